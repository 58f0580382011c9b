package zoocfg_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/server/zoocfg"
)

func TestZooCfgIsReadAsByZooKeeper(t *testing.T) {
	t.Parallel()
	users := filepath.Join(t.TempDir(), "jaas.conf")
	jaas := "Client { x required user_no=\"${no}\"; };\nServer {\n" +
		"  org.apache.zookeeper.server.auth.DigestLoginModule required\n  user_super=\"adm\\\"in\"\n" +
		"  user_bob=\"geheim\";\n};\n"
	if err := os.WriteFile(users, []byte(jaas), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		text string
		want server.Config
	}{
		"nothing": {"", server.Config{TickTime: 3 * time.Second, MaxClientConns: 60}},
		"sample": {
			"# The number of milliseconds of each tick\ntickTime=2000\ninitLimit=10\nsyncLimit=5\n" +
				"dataDir=/var/lib/zookeeper\nclientPort=2181\n#maxClientCnxns=60\n",
			server.Config{
				TickTime: 2 * time.Second, MaxClientConns: 60, Data: "/var/lib/zookeeper",
				Listen: []string{":2181"},
			},
		},
		"addresses and limits": {
			"clientPort = 1\r\nclientPortAddress: ::1\nsecureClientPort 2\n! a comment\nminSessionTimeout=-1\n" +
				"maxSessionTimeout=7000\nmaxClientCnxns=0\njute.maxbuffer=0x200000\n" +
				"4lw.commands.whitelist=ruok, stat,\\\n   mntr\n",
			server.Config{
				TickTime: 3 * time.Second, MaxClientConns: server.Unlimited, Listen: []string{"[::1]:1"},
				TLSListen: []string{":2"}, MaxSessionTimeout: 7 * time.Second,
				MaxFrame: 2 << 20, FourLetterWords: []string{"ruok", "stat", "mntr"},
			},
		},
		"the word isro, which readonlymode.enabled allows": {
			"4lw.commands.whitelist=stat\nreadonlymode.enabled=true\n",
			server.Config{TickTime: 3 * time.Second, MaxClientConns: 60, FourLetterWords: []string{"stat", "isro"}},
		},
		"one member, as the official image writes it": {
			"dataDir=/data\nstandaloneEnabled=true\nserver.1=localhost:2888:3888;2182\n",
			server.Config{
				TickTime: 3 * time.Second, MaxClientConns: 60, Data: "/data", Listen: []string{":2182"},
			},
		},
		"one member with a role and addresses": {
			"standaloneEnabled=false\npeerType=participant\nserver.5=[fd00::1]:1:2:participant|b:1:2;[::1]:2182\n",
			server.Config{TickTime: 3 * time.Second, MaxClientConns: 60, Listen: []string{"[::1]:2182"}},
		},
		"one member that does not say where clients connect": {
			"clientPort=2181\nclientPortAddress=0.0.0.0\nserver.1=127.0.0.1:2888:3888\n",
			server.Config{TickTime: 3 * time.Second, MaxClientConns: 60, Listen: []string{"0.0.0.0:2181"}},
		},
		"one member that says the same": {
			"clientPort=2181\nserver.1=a:2888:3888; 127.0.0.1:2181 \n",
			server.Config{TickTime: 3 * time.Second, MaxClientConns: 60, Listen: []string{"127.0.0.1:2181"}},
		},
		"ports that are none, and brackets": {
			"clientPort=0\nsecureClientPort=0\nadmin.serverPort=1\nadmin.serverAddress=[::1]\n",
			server.Config{TickTime: 3 * time.Second, MaxClientConns: 60, AdminListen: "[::1]:1"},
		},
		"lines that go on": {
			"dataDir=/d \\\r\n  \r\nclientPort\t1\rtickTime=20\\\n  00",
			server.Config{TickTime: 2 * time.Second, MaxClientConns: 60, Data: "/d", Listen: []string{":1"}},
		},
		"letters": {
			"dataDir=/d\\u00e4\\ud83d\\ude00\n# ä comment\n",
			server.Config{TickTime: 3 * time.Second, MaxClientConns: 60, Data: "/dä\U0001f600"},
		},
		"system properties": {
			"zookeeper.extendedTypesEnabled=true\nenforceQuota=true\nskipACL=yes\n" +
				"znode.container.checkIntervalMs=500\nzookeeper.znode.container.maxPerMinute=7\n" +
				"znode.container.maxNeverUsedIntervalMs=9\n" +
				"DigestAuthenticationProvider.superDigest=super:UdxDQl4f9v5oITwcAsO9bmWgHSI=\n",
			server.Config{
				TickTime: 3 * time.Second, MaxClientConns: 60, ExtendedTypes: true, EnforceQuota: true, SkipACL: true,
				ContainerInterval: 500 * time.Millisecond,
				ContainerRate:     7, ContainerUnused: 9 * time.Millisecond,
				SuperDigest: "super:UdxDQl4f9v5oITwcAsO9bmWgHSI=",
			},
		},
		"admin by its port": {
			"admin.serverPort=8081\n",
			server.Config{TickTime: 3 * time.Second, MaxClientConns: 60, AdminListen: "0.0.0.0:8081"},
		},
		"admin turned off": {
			"admin.serverPort=8081\nadmin.enableServer=false\n",
			server.Config{TickTime: 3 * time.Second, MaxClientConns: 60},
		},
		"admin turned on": {
			"admin.enableServer=true\nadmin.serverAddress=127.0.0.1\nadmin.commandURL=/c\n",
			server.Config{
				TickTime: 3 * time.Second, MaxClientConns: 60, AdminListen: "127.0.0.1:8080",
				AdminPath: "/c",
			},
		},
		"users": {
			"authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n" +
				"java.security.auth.login.config=" + users + "\nsuperUser=super\nsessionRequireClientSASLAuth=true\n",
			server.Config{
				TickTime: 3 * time.Second, MaxClientConns: 60,
				SASLUsers:  map[string]string{"super": `adm"in`, "bob": "geheim"},
				SASLSupers: []string{"super"}, RequireSASL: true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, warnings, err := zoocfg.Parse(strings.NewReader(row.text), nil)
			if err != nil || len(warnings) > 0 {
				t.Errorf("got %q %v, want no warning and no error", warnings, err)
			}
			if diff := cmp.Diff(row.want, got, cmpopts.IgnoreUnexported(server.Config{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMistypedKeyIsNamedAsItShouldBe(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"tickTme":                               "tickTime",
		"daatDir":                               "dataDir",
		"SkipAcl":                               "skipACL",
		"maxCnxn":                               "maxCnxns",
		"maxClientCnxn":                         "maxClientCnxns",
		"minSesionTimeuot":                      "minSessionTimeout",
		"maxSessionTimeOut":                     "maxSessionTimeout",
		"zookeeper.sesionRequireClientSASLAuth": "sessionRequireClientSASLAuth",
		"frobnicate":                            "none",
		"myapp.timeout":                         "none",
		"skip":                                  "none",
		"tick":                                  "none",
	} {
		_, warnings, err := zoocfg.Parse(strings.NewReader("dataDir=/d\n"+key+"=1\n"), nil)
		if err != nil || len(warnings) != 1 {
			t.Errorf("%s: got %q and %v, want a warning", key, warnings, err)
			continue
		}
		_, got, found := strings.Cut(warnings[0], "; did you mean ")
		if !found {
			got = "none?"
		}
		if got != want+"?" {
			t.Errorf("%s: got %q, want %s", key, warnings[0], want)
		}
	}
}

func TestZooCfgKeyWithoutEffectCausesAWarning(t *testing.T) {
	t.Parallel()
	_, warnings, err := zoocfg.Parse(strings.NewReader("dataDir=/d\ndataLogDir=/l\nnoSuchKey=1\n"+
		"forceSync=no\nreconfigEnabled=true\nsnapCount=5\n4lw.commands.whitelist=ruok stat\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"dataLogDir", "line 3: unknown key noSuchKey", "forceSync", "reconfigEnabled", `"ruok stat"`,
	} {
		if !strings.Contains(strings.Join(warnings, "\n"), key) {
			t.Errorf("got warnings %[2]q, want one that names %[1]s", key, warnings)
		}
	}
	if len(warnings) != 5 {
		t.Errorf("got %q, want 5 warnings", warnings)
	}
}

func TestZooCfgOfAnEnsembleIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"server.1=a:2888:3888\nserver.2=b:2888:3888\n", "group.1=1:2\n", "server.1=a:1:2:observer;2181\n",
		"server.1=a:2888:3888;2181\nserver.2=b:2888:3888;2181\nserver.3=c:2888:3888:observer\n",
		"dynamicConfigFile=/x\n", "peerType=observer\n",
	} {
		_, _, err := zoocfg.Parse(strings.NewReader(text), nil)
		if !errors.Is(err, zoocfg.ErrEnsemble) || !strings.Contains(err.Error(), "Apache ZooKeeper") {
			t.Errorf("%q: got %v, want an error that points to Apache ZooKeeper", text, err)
		}
	}
}

func TestInvalidZooCfgIsRefused(t *testing.T) {
	t.Parallel()
	open := filepath.Join(t.TempDir(), "jaas.conf")
	module := "Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob=\"\"; };\n"
	if err := os.WriteFile(open, []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"\n\ntickTime=soon\n":                     "line 3",
		"clientPort=99999999999\n":                "clientPort",
		"clientPortAddress=127.0.0.1\n":           "needs clientPort",
		"bad\\u12=1\n":                            "line 1",
		"saslUsersFile=/no/such/file\n":           "saslUsersFile",
		"java.security.auth.login.config=" + open: "option user_bob: want a user and a password",

		// What would be guessed at, and how ZooKeeper guesses.
		"dataDir=${ZK_DATA}\n": "line 1: dataDir has the placeholder ${ZK_DATA}",
		"SASLAuthenticationProvider.superPassword=${PASSWORD}\n": "the placeholder ${PASSWORD}",
		"maxClientCnxns={{ .Values.max }}\n":                     "the placeholder {{ .Values.max }}",
		"noSuchKey=a${b}c\n":                                     "the placeholder ${b}",
		"tickTime=2_000\n":                                       "tickTime must be a number",
		"tickTime=2s\n":                                          "tickTime must be a number",
		"jute.maxbuffer=4MB\n":                                   "jute.maxbuffer must be a number",
		"jute.maxbuffer=0x4x\n":                                  "jute.maxbuffer must be a number",
		"sessionRequireClientSASLAuth=1\n":                       "sessionRequireClientSASLAuth must be false or true",
		"sessionRequireClientSASLAuth=yes\n":                     "sessionRequireClientSASLAuth must be false or true",
		"enforce.auth.enabled=on\n":                              "enforce.auth.enabled must be false or true",
		"admin.enableServer=no\n":                                "admin.enableServer must be false or true",
		"skipACL=true\n":                                         "skipACL must be no or yes",
		"forceSync=false\n":                                      "forceSync must be yes or no",
		"ssl.clientAuth=required\n":                              "ssl.clientAuth must be none or want or need",
		"a=b\ndataDir=/dä\n":                                     "line 2: dataDir: ZooKeeper reads",

		"server.1=a:2888:3888;2181\nclientPort=2182\n":                        "say :2182, and the line",
		"server.1=a:1:2;2181\nclientPort=2181\nclientPortAddress=127.0.0.1\n": "say 127.0.0.1:2181, and the line",
		"server.a=a:2888:3888;2181\n":                                         "server.a must be server. and a number",
		"server.1=a:2888;2181\n":                                              "want host:port:port",
		"server.1=a:2888:3888:voter;2181\n":                                   "the role must be",
		"server.1=a:2888:99999\n":                                             "want host:port:port",
		"server.1=::1:2888:3888;2181\n":                                       "want host:port:port",
		"server.1=[::1:2888:3888;2181\n":                                      "want ]: behind the address",
		"server.1=a:2888:3888;a:b:2181\n":                                     "want a port or host:port for clients",
		"server.1=a:2888:3888;\n":                                             "want a port or host:port for clients",
		"server.1=a:2888:3888;2181;2182\n":                                    "want a port or host:port for clients",
		"server.1=a:2888:3888;unix:2181\n":                                    "want a port or host:port for clients",
		"ssl.keyStore.location=/no/such.pem":                                  "ssl.keyStore.location",

		// Values that are missing, or that no server can have.
		"clientPort=\n":                                        "line 1: clientPort has no value",
		"dataDir=\n":                                           "line 1: dataDir has no value",
		"clientPort=1\nclientPortAddress=\n":                   "line 2: clientPortAddress has no value",
		"skipACL=\n":                                           "line 1: skipACL has no value",
		"saslUsersFile=\n":                                     "line 1: saslUsersFile has no value",
		"clientPort=99999\n":                                   "clientPort must be from 0 to 65535",
		"clientPort=-1\n":                                      "clientPort must be from 0 to 65535",
		"clientPort=0\nclientPortAddress=::1":                  "clientPortAddress needs clientPort",
		"admin.serverPort=-1\n":                                "admin.serverPort must be from 0 to 65535",
		"clientPort=1\nclientPortAddress=a:2":                  "clientPortAddress must be a name or an address",
		"tickTime=0\n":                                         "tickTime must be from 1 to",
		"tickTime=-2000\n":                                     "tickTime must be from 1 to",
		"tickTime=107374183\n":                                 "tickTime must be at most 107374182",
		"minSessionTimeout=60001\n":                            "minSessionTimeout must be at most 20 ticks",
		"maxSessionTimeout=5999\n":                             "maxSessionTimeout must not be below minSessionTimeout",
		"jute.maxbuffer=0\n":                                   "jute.maxbuffer must be from 45 to",
		"jute.maxbuffer=4294967296\n":                          "jute.maxbuffer must be at most 2147483647",
		"clientPort=1\nzookeeper.clientPort=2":                 "line 2: clientPort is there with and without",
		"saslUsersFile=/a\njava.security.auth.login.config=/b": "line 2: saslUsersFile and java.security.auth",
		"DigestAuthenticationProvider.superDigest=super:pw\n":  "superDigest must be user:base64",
		"X509AuthenticationProvider.superUser=CN=a, O=b\n":     "line 1: X509AuthenticationProvider.superUser has",
		"\ufeffclientPort=1\n":                                 "begins with a byte order mark",
		prometheus + "metricsProvider.httpsPort=1\n":           "needs metricsProvider.ssl.keyStore",
		prometheus + "metricsProvider.httpsPort=1":             "needs metricsProvider.ssl.trustStore",
		prometheus + "metricsProvider.httpsPort=1\n" +
			"metricsProvider.ssl.need.client.auth=false\n" +
			"metricsProvider.ssl.keyStore.location=/no/such.pem\n": "zoocfg: metricsProvider.ssl.keyStore.location",
	} {
		if _, _, err := zoocfg.Parse(strings.NewReader(text), nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error that says %q", text, err, want)
		}
	}
}

const prometheus = "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n"

func TestZooCfgTurnsTheMetricsOn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"metricsProvider.httpPort=7001\n": "",
		prometheus:                        "0.0.0.0:7000",
		prometheus + "metricsProvider.httpPort=7001\nmetricsProvider.httpHost=::1": "[::1]:7001",
		prometheus + "metricsProvider.exportJvmInfo=true\n":                        "0.0.0.0:7000",
		// without a port for it the certificate is not read
		prometheus + "metricsProvider.ssl.keyStore.location=/no/such.pem\n": "0.0.0.0:7000",
	} {
		cfg, warnings, err := zoocfg.Parse(strings.NewReader(text), nil)
		if err != nil || len(warnings) > 0 || cfg.MetricsListen != want || cfg.MetricsTLSListen != "" {
			t.Errorf("%q: got %q and %q, %q, %v, want %q", text, cfg.MetricsListen, cfg.MetricsTLSListen, warnings,
				err, want)
		}
	}
}

// FuzzZooCfg checks that no text makes the parser panic.
func FuzzZooCfg(f *testing.F) {
	f.Add("tickTime=2000\nserver.1=x\n\\")
	f.Add("a\\u00")
	f.Add("server.1=[::1]:1:2:observer|b:1:2;[::1]:2181\rclientPort=1\\\r\n")
	f.Add("skipACL={{x}}\ndataDir=/\\ud83d\\ude00")
	f.Fuzz(func(_ *testing.T, text string) {
		// no files
		if !strings.Contains(text, "sers") && !strings.Contains(text, "ssl") && !strings.Contains(text, "java") {
			_, _, _ = zoocfg.Parse(strings.NewReader(text), nil)
		}
	})
}

// Config.Listen takes "unix:2181" for a socket.
func TestHostNamedUnixIsRefused(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"clientPort", "secureClientPort"} {
		_, _, err := zoocfg.Parse(strings.NewReader("dataDir=/x\n"+key+"=2181\n"+key+"Address=unix\n"), nil)
		if err == nil || !strings.Contains(err.Error(), key+"Address") {
			t.Errorf("%sAddress=unix: got %v, want an error that names the key", key, err)
		}
	}
}

// Certificates are those of the files, and clients of the metrics show one unless the file says otherwise.
func TestCertificatesComeFromTheFile(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pemFile := filepath.Join(t.TempDir(), "all.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...)
	if err := os.WriteFile(pemFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	const metrics = "metricsProvider."
	keys := func(prefix string) string {
		return prefix + "ssl.keyStore.location=" + pemFile + "\n" + prefix + "ssl.trustStore.location=" + pemFile + "\n"
	}
	base := "secureClientPort=1\n" + keys("") + metrics + "className=" +
		"org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n" + metrics + "httpsPort=2\n" +
		keys(metrics)
	for more, want := range map[string]tls.ClientAuthType{
		"":                                       tls.RequireAndVerifyClientCert,
		metrics + "ssl.need.client.auth=false\n": tls.VerifyClientCertIfGiven,
		metrics + "ssl.need.client.auth=false\n" + metrics + "ssl.want.client.auth=false\n": tls.NoClientCert,
	} {
		cfg, warnings, err := zoocfg.Parse(strings.NewReader(base+more), nil)
		if err != nil || len(warnings) > 0 {
			t.Fatal(warnings, err)
		}
		if got := cfg.MetricsTLS.ClientAuth; got != want || cfg.TLS.ClientAuth != tls.RequireAndVerifyClientCert {
			t.Errorf("%q: got %v and %v, want %v for the metrics", more, got, cfg.TLS.ClientAuth, want)
		}
		now, err := cfg.TLS.GetConfigForClient(nil) // at each handshake, so that a renewed certificate counts
		if err != nil || !bytes.Equal(now.Certificates[0].Certificate[0], cert) || now.ClientCAs == nil {
			t.Errorf("got %v, %v, want the certificate", now, err)
		}
	}
}
