//go:build unix

package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// writeCertificates writes into dir an authority (ca.pem), a server's certificate for 127.0.0.1 and for "elsewhere"
// (server.pem, server.key), and a client's (client.pem, client.key).
func writeCertificates(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:  x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	issue := func(name string, cert *x509.Certificate) error {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		der, err := x509.CreateCertificate(rand.Reader, cert, ca, &own.PublicKey, key)
		if err != nil {
			return err
		}
		private, err := x509.MarshalPKCS8PrivateKey(own)
		return errors.Join(err, writePEM(filepath.Join(dir, name+".pem"), "CERTIFICATE", der),
			writePEM(filepath.Join(dir, name+".key"), "PRIVATE KEY", private))
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		return err
	}
	leaf := func(serial int64, usage x509.ExtKeyUsage) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial),
			Subject: pkix.Name{
				CommonName:         "test.example.com",
				OrganizationalUnit: []string{"#5 R&D"}, Organization: []string{"Acme , Inc."},
			},
			NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		}
	}
	server := leaf(2, x509.ExtKeyUsageServerAuth)
	server.DNSNames, server.IPAddresses = []string{"elsewhere"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	return errors.Join(writePEM(filepath.Join(dir, "ca.pem"), "CERTIFICATE", der),
		issue("server", server), issue("client", leaf(3, x509.ExtKeyUsageClientAuth)))
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
