// Package certfile reads certificates for TLS from PEM files, and reads them again when they change.
package certfile

// Certificates from files.

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Names names PEM files. Cert and Key may be the same file, and may both be empty; so may CA.
type Names struct {
	Cert string // certificates, the own one first
	Key  string // its key
	CA   string // authorities for the other side's certificates
}

// Files are certificates as files have them now. Its methods may be called from several goroutines at once.
type Files struct {
	names Names
	log   *slog.Logger

	mu     sync.Mutex // guards what follows; held while files are read
	stamps [3]os.FileInfo
	cert   *tls.Certificate
	cas    *x509.CertPool
	server *tls.Config // of cert and cas, or nil
}

// Load reads the files. The logger is told when they have changed.
func Load(names Names, log *slog.Logger) (*Files, error) {
	if (names.Cert == "") != (names.Key == "") {
		return nil, errors.New("a certificate and its key need each other")
	}
	f := &Files{names: names, log: log, stamps: stamps(names)}
	return f, f.load()
}

// load reads the files. If one is invalid it changes nothing. The caller holds f.mu or owns f.
func (f *Files) load() error {
	var cert *tls.Certificate
	var cas *x509.CertPool
	if f.names.Cert != "" {
		var err error
		if cert, err = loadPair(f.names.Cert, f.names.Key); err != nil {
			return err
		}
	}
	if f.names.CA != "" {
		pem, err := os.ReadFile(f.names.CA)
		if err != nil {
			return err
		}
		if cas = x509.NewCertPool(); !cas.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s contains no PEM certificate", f.names.CA)
		}
	}
	f.cert, f.cas, f.server = cert, cas, nil
	f.warnOfDates()
	return nil
}

// loadPair reads a certificate and its key. Its errors name the files, and say so if the key is locked by a password.
func loadPair(certFile, keyFile string) (*tls.Certificate, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err == nil {
		return &pair, nil
	}
	for block, rest := pem.Decode(keyPEM); block != nil; block, rest = pem.Decode(rest) {
		// PKCS 8, and what openssl wrote before
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return nil, fmt.Errorf("the key in %s has a password, which cannot be given: "+
				"openssl pkey -in KEY -out PLAIN writes it without one", keyFile)
		}
	}
	return nil, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err)
}

// warnOfDates logs that the certificate is not valid now: the other side will refuse it, and cannot say so here.
func (f *Files) warnOfDates() {
	if f.cert == nil || f.cert.Leaf == nil { // there is none with GODEBUG=x509keypairleaf=0
		return
	}
	const text = "the other side will refuse the certificate: check its dates and this machine's clock"
	leaf := f.cert.Leaf
	if now := time.Now(); now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		f.log.Warn(text, "cert", f.names.Cert, "from", leaf.NotBefore, "to", leaf.NotAfter)
	}
}

// stamps returns what tells a changed file. It is nil for a file that is missing.
func stamps(names Names) (s [3]os.FileInfo) {
	for i, name := range []string{names.Cert, names.Key, names.CA} {
		if info, err := os.Stat(name); name != "" && err == nil {
			s[i] = info
		}
	}
	return s
}

// Changed reports whether a file is not the one that it was, as far as os.Stat tells. Either is nil if it is missing.
func Changed(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a != b
	}
	return a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) || !os.SameFile(a, b)
}

// refresh reads the files again if they have changed. If they are invalid it keeps what they were and logs that, once
// for each change: a certificate may be written before its key. The caller holds f.mu.
func (f *Files) refresh() {
	now := stamps(f.names)
	same := true
	for i := range now {
		same = same && !Changed(now[i], f.stamps[i])
	}
	if same {
		return
	}
	f.stamps = now // from before they are read, so that a change meanwhile is noticed
	if err := f.load(); err != nil {
		f.log.Error("cannot use the changed files for TLS; the former certificate stays in use",
			"cert", f.names.Cert, "key", f.names.Key, "ca", f.names.CA, "err", err)
		return
	}
	f.log.Info("read the changed files for TLS", "cert", f.names.Cert, "ca", f.names.CA)
}

// Cert returns the certificate, nil if there is none.
func (f *Files) Cert() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	return f.cert
}

// Client adds the certificate, whatever it is at each handshake, and the authorities of now to a client's
// configuration.
func (f *Files) Client(base *tls.Config) {
	base.RootCAs = f.cas
	if f.names.Cert != "" {
		base.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return f.Cert(), nil
		}
	}
}

// Server adds the certificate and the authorities, whatever they are at each handshake, to a server's configuration.
func (f *Files) Server(base *tls.Config) {
	base.Certificates, base.ClientCAs = []tls.Certificate{*f.cert}, f.cas
	plain := base.Clone()
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.refresh()
		// Session tickets of before are still accepted: crypto/tls takes their keys from the configuration that has
		// this function, whatever it returns. What protects is that it resumes a session only if the certificate in the
		// ticket leads to one of the ClientCAs returned here.
		if f.server == nil {
			f.server = plain.Clone()
			f.server.Certificates, f.server.ClientCAs = []tls.Certificate{*f.cert}, f.cas
		}
		return f.server, nil
	}
}
