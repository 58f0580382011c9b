package zoocfg

// The table of all keys of zoo.cfg.

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/server/internal/javafile"
)

// effect is what a key of zoo.cfg does here.
type effect string

const (
	obeyed   effect = "obeyed"
	noEffect effect = "no effect"
	warned   effect = "warning"
	refused  effect = "refused"
)

// zooKey is one key, or with a star at the end of name all keys with that prefix.
type zooKey struct {
	name     string
	effect   effect
	harmless string // a value of a refused key that asks for what is the case anyway, and is accepted
	why      string
}

// zooKeys are the keys of ZooKeeper 3.9.5. docs/zoo-cfg.md has those with an effect. Keys that protect something and
// that this server cannot obey are refused. Of several matching names the longest counts.
var zooKeys = []zooKey{
	{"dataDir", obeyed, "", "the directory of the state"},
	{"dataLogDir", warned, "", "everything is in dataDir"},
	{"clientPort", obeyed, "", ""},
	{"clientPortAddress", obeyed, "", "all if missing"},
	{"secureClientPort", obeyed, "", ""},
	{"secureClientPortAddress", obeyed, "", "all if missing"},
	{"tickTime", obeyed, "", "3000 if missing"},
	{"minSessionTimeout", obeyed, "", ""},
	{"maxSessionTimeout", obeyed, "", ""},
	{"maxClientCnxns", obeyed, "", "60 if missing; 0 is no limit"},
	{"maxCnxns", obeyed, "", "of all ports together; 0 is the default of limits.md"},
	{"nio.sessionlessCnxnTimeout", obeyed, "", ""},
	{"jute.maxbuffer", obeyed, "", "of requests"},
	{"4lw.commands.whitelist", obeyed, "", ""},
	{"extendedTypesEnabled", obeyed, "", ""},
	{"enforceQuota", obeyed, "", ""},
	{"skipACL", obeyed, "", "yes or no"},
	{"znode.container.checkIntervalMs", obeyed, "", ""},
	{"znode.container.maxPerMinute", obeyed, "", ""},
	{"znode.container.maxNeverUsedIntervalMs", obeyed, "", ""},
	{"admin.enableServer", obeyed, "", "off unless it or admin.serverPort is there"},
	{"admin.serverPort", obeyed, "", ""},
	{"admin.serverAddress", obeyed, "", ""},
	{"admin.commandURL", obeyed, "", ""},
	{"DigestAuthenticationProvider.superDigest", obeyed, "", ""},
	{"X509AuthenticationProvider.superUser", obeyed, "", ""},
	{"superUser", obeyed, "", "also superUser.1 and so on"},
	{"superUser.*", obeyed, "", ""},
	{"SASLAuthenticationProvider.superPassword", obeyed, "", "the password of the user super"},
	{"sessionRequireClientSASLAuth", obeyed, "", ""},
	{"allowSaslFailedClients", obeyed, "", ""},
	{"enforce.auth.enabled", obeyed, "", "with the scheme sasl; others are refused"},
	{"enforce.auth.schemes", obeyed, "", "with the scheme sasl; others are refused"},
	{"java.security.auth.login.config", obeyed, "", "the users of ZooKeeper's DigestLoginModule in its section Server"},
	{"saslUsersFile", obeyed, "", "this server's own: a file with lines user:password"},
	{"authProvider", obeyed, "", "ZooKeeper's own providers; other classes are refused"},
	{"authProvider.*", obeyed, "", "ZooKeeper's own providers; other classes are refused"},
	{"ensembleAuthName", obeyed, "", "with the provider of the scheme ensemble"},
	{"ssl.keyStore.location", obeyed, "", "a PEM file with the key and its certificates"},
	{"ssl.trustStore.location", obeyed, "", "a PEM file"},
	{"ssl.clientAuth", obeyed, "", ""},
	{"ssl.keyStore.type", obeyed, "", "PEM; others cause a warning"},
	{"ssl.trustStore.type", obeyed, "", "PEM; others cause a warning"},
	{"ssl.keyStore.password", obeyed, "", "only causes a warning: PEM files have no password here"},
	{"ssl.trustStore.password", obeyed, "", "only causes a warning: PEM files have no password here"},
	{"ssl.keyStore.passwordPath", warned, "", "PEM files have no password here"},
	{"ssl.trustStore.passwordPath", warned, "", "PEM files have no password here"},
	{"ssl.protocol", obeyed, "", "TLSv1.2, TLSv1.3 or TLS; others are refused"},
	{"ssl.enabledProtocols", obeyed, "", "TLSv1.2 and TLSv1.3; others are refused"},
	{"ssl.ciphersuites", refused, "", "this server uses only safe ones"},
	{"ssl.crl", refused, "false", "revoked certificates are not detected"},
	{"ssl.ocsp", refused, "false", "revoked certificates are not detected"},
	{"ssl.clientHostnameVerification", refused, "false", "names of clients are not verified"},
	{"ssl.hostnameVerification", noEffect, "", "it concerns names of servers"},
	{"ssl.context.supplier.class", refused, "", "there is no Java"},
	{"ssl.authProvider", refused, "x509", "there is no Java"},
	{"X509AuthenticationProvider.*", refused, "", "the identity of a certificate is its subject"},
	{"ssl.handshakeDetectionTimeoutMillis", noEffect, "", "nio.sessionlessCnxnTimeout limits a handshake"},
	{"ssl.sslProvider", noEffect, "", "there is only one"},
	{"ssl.tcnative.*", noEffect, "", "there is no Java"},
	{"fips-mode", noEffect, "", "use Go's, GODEBUG=fips140"},
	{"client.certReload", noEffect, "", "certificates are read again whenever their files have changed"},
	{"client.portUnification", warned, "", "clientPort is plain and secureClientPort has TLS"},
	{"ssl.quorum.*", noEffect, "", "only members of an ensemble use it"},
	{"sslQuorum", noEffect, "", "only members of an ensemble use it"},
	{"sslQuorumReloadCertFiles", noEffect, "", "only members of an ensemble use it"},
	{"portUnification", noEffect, "", "only members of an ensemble use it"},
	{"DigestAuthenticationProvider.enabled", refused, "true", "the scheme digest is always there"},
	{"DigestAuthenticationProvider.digestAlg", refused, "SHA1", "it would change identities"},
	{"kerberos.*", refused, "false", "there is no Kerberos"},
	{"sasl.serverconfig", refused, "Server", "users are read from the section Server"},
	{"audit.enable", refused, "false", "there is no audit log"},
	{"audit.impl.class", noEffect, "", "there is no audit log, see audit.enable"},
	{"admin.forceHttps", refused, "false", "the HTTP commands have no TLS"},
	{"admin.portUnification", warned, "", "the HTTP commands have no TLS"},
	{"admin.needClientAuth", noEffect, "", "it needs TLS, see admin.forceHttps"},
	{"admin.idleTimeout", noEffect, "", "30 s"},
	{"admin.rateLimiterIntervalInMS", noEffect, "", "it concerns snapshot and restore, which are not supported"},
	{"admin.snapshot.*", noEffect, "", "snapshot is not supported"},
	{"admin.restore.*", noEffect, "", "restore is not supported"},
	{"datadir.autocreate", refused, "true", "a missing data directory is created"},
	{"db.autocreate", refused, "true", "an empty data directory is initialized"},
	{"connectionMaxTokens", refused, "0", "the rate of new connections has no limit"},
	{"connection_throttle_tokens", refused, "0", "the rate of new connections has no limit"},
	{"connectionTokenFillTime", noEffect, "", "only with connectionMaxTokens"},
	{"connectionTokenFillCount", noEffect, "", "only with connectionMaxTokens"},
	{"connectionFreezeTime", noEffect, "", "only with connectionMaxTokens"},
	{"connectionDropIncrease", noEffect, "", "only with connectionMaxTokens"},
	{"connectionDropDecrease", noEffect, "", "only with connectionMaxTokens"},
	{"connectionDecreaseRatio", noEffect, "", "only with connectionMaxTokens"},
	{"connection_throttle_*", noEffect, "", "only with connectionMaxTokens"},
	{"globalOutstandingLimit", noEffect, "", "this server has limits of its own: limits.md"},
	{"requestThrottleLimit", noEffect, "", "this server has limits of its own: limits.md"},
	{"requestThrottleStallTime", noEffect, "", "this server has limits of its own: limits.md"},
	{"requestThrottleDropStale", noEffect, "", "this server has limits of its own: limits.md"},
	{"requestStaleLatencyCheck", noEffect, "", "this server has limits of its own: limits.md"},
	{"requestStaleConnectionCheck", noEffect, "", "this server has limits of its own: limits.md"},
	{"request_throttle_*", noEffect, "", "this server has limits of its own: limits.md"},
	{"request_throttler.*", noEffect, "", "this server has limits of its own: limits.md"},
	{"request_stale_*", noEffect, "", "this server has limits of its own: limits.md"},
	{"largeRequestMaxBytes", noEffect, "", "this server has limits of its own: limits.md"},
	{"largeRequestThreshold", noEffect, "", "this server has limits of its own: limits.md"},
	{"throttledOpWaitTime", noEffect, "", "this server has limits of its own: limits.md"},
	{"throttled_op_wait_time", noEffect, "", "this server has limits of its own: limits.md"},
	{"outstandingHandshake.limit", noEffect, "", "this server has limits of its own: limits.md"},
	{"netty.*", noEffect, "", "this server has limits of its own: limits.md"},
	{"advancedFlowControlEnabled", noEffect, "", "this server has limits of its own: limits.md"},
	{"maxInProcessingDeadWatchers", noEffect, "", "this server has limits of its own: limits.md"},
	{"forceSync", obeyed, "", "no causes a warning: writes are always synced before their reply"},
	{"reconfigEnabled", obeyed, "", "true causes a warning: there are no members to change"},
	{"metricsProvider.className", obeyed, "", "PrometheusMetricsProvider; others cause a warning"},
	{"metricsProvider.httpHost", obeyed, "", "all if missing"},
	{"metricsProvider.httpPort", obeyed, "", "7000 if missing, and none if there is metricsProvider.httpsPort"},
	{"metricsProvider.httpsPort", obeyed, "", "as in ZooKeeper 3.10"},
	{"metricsProvider.ssl.keyStore.location", obeyed, "", "as for clients"},
	{"metricsProvider.ssl.trustStore.location", obeyed, "", "as for clients"},
	{"metricsProvider.ssl.keyStore.type", obeyed, "", "as for clients"},
	{"metricsProvider.ssl.trustStore.type", obeyed, "", "as for clients"},
	{"metricsProvider.ssl.keyStore.password", obeyed, "", "as for clients"},
	{"metricsProvider.ssl.trustStore.password", obeyed, "", "as for clients"},
	{"metricsProvider.ssl.protocol", obeyed, "", "as for clients"},
	{"metricsProvider.ssl.enabledProtocols", obeyed, "", "as for clients"},
	{"metricsProvider.ssl.need.client.auth", obeyed, "", "true if missing"},
	{"metricsProvider.ssl.want.client.auth", obeyed, "", "true if missing"},
	{"metricsProvider.ssl.*", refused, "", "this server uses only safe ciphers, and knows nothing else"},
	{"metricsProvider.*", noEffect, "", "there is no Java"},
	{"autopurge.*", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"preAllocSize", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"snapCount", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"snapSizeLimitInKb", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"txnLogSizeLimitInKb", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"commitLogCount", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"fsync.warningthresholdms", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"flushDelay", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"maxWriteQueuePollTime", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"maxBatchSize", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"snapshot.*", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"digest.enabled", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"serializeLastProcessedZxid.enabled", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"closeSessionTxn.enabled", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"emulate353TTLNodes", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"jute.maxbuffer.extrasize", noEffect, "", "ZooKeeper's log and snapshots: this server uses a database"},
	{"maxResponseCacheSize", noEffect, "", "threads and buffers of ZooKeeper"},
	{"maxGetChildrenResponseCacheSize", noEffect, "", "threads and buffers of ZooKeeper"},
	{"watchManagerName", noEffect, "", "threads and buffers of ZooKeeper"},
	{"watcherCleanThreadsNum", noEffect, "", "threads and buffers of ZooKeeper"},
	{"watcherCleanThreshold", noEffect, "", "threads and buffers of ZooKeeper"},
	{"watcherCleanIntervalInSeconds", noEffect, "", "threads and buffers of ZooKeeper"},
	{"bitHashCacheSize", noEffect, "", "threads and buffers of ZooKeeper"},
	{"nio.*", noEffect, "", "threads and buffers of ZooKeeper"},
	{"commitProcessor.*", noEffect, "", "threads and buffers of ZooKeeper"},
	{"serverCnxnFactory", noEffect, "", "there is one, and it knows TLS"},
	{"clientPortListenBacklog", noEffect, "", "the operating system's default"},
	{"clientTcpKeepAlive", noEffect, "", "always on"},
	{"enableEagerACLCheck", noEffect, "", "always on"},
	{"jvm.pause.*", noEffect, "", "there is no Java"},
	{"jmx.*", noEffect, "", "there is no Java"},
	{"messageTracker.*", noEffect, "", "only members of an ensemble use it"},
	{"server.*", obeyed, "", "one alone is a standalone server, at the port behind its semicolon; more: ErrEnsemble"},
	{"group.*", refused, "", "only members of an ensemble use it: ErrEnsemble"},
	{"weight.*", refused, "", "only members of an ensemble use it: ErrEnsemble"},
	{"dynamicConfigFile", refused, "", "only members of an ensemble use it: ErrEnsemble"},
	{"peerType", refused, "participant", "only members of an ensemble use it: ErrEnsemble"},
	{"initLimit", noEffect, "", "only members of an ensemble use it"},
	{"syncLimit", noEffect, "", "only members of an ensemble use it"},
	{"connectToLearnerMasterLimit", noEffect, "", "only members of an ensemble use it"},
	{"electionAlg", noEffect, "", "only members of an ensemble use it"},
	{"cnxTimeout", noEffect, "", "only members of an ensemble use it"},
	{"quorumCnxnTimeoutMs", noEffect, "", "only members of an ensemble use it"},
	{"electionPortBindRetry", noEffect, "", "only members of an ensemble use it"},
	{"tcpKeepAlive", noEffect, "", "only members of an ensemble use it"},
	{"fastleader.*", noEffect, "", "only members of an ensemble use it"},
	{"maxTimeToWaitForEpoch", noEffect, "", "only members of an ensemble use it"},
	{"leaderServes", noEffect, "", "only members of an ensemble use it"},
	{"maxConcurrentSnapSyncs", noEffect, "", "only members of an ensemble use it"},
	{"maxConcurrentDiffSyncs", noEffect, "", "only members of an ensemble use it"},
	{"leader.*", noEffect, "", "only members of an ensemble use it"},
	{"learner.*", noEffect, "", "only members of an ensemble use it"},
	{"observer.*", noEffect, "", "only members of an ensemble use it"},
	{"observerMasterPort", noEffect, "", "only members of an ensemble use it"},
	{"syncEnabled", noEffect, "", "only members of an ensemble use it"},
	{"standaloneEnabled", noEffect, "", "only members of an ensemble use it"},
	{"localSessionsEnabled", noEffect, "", "only members of an ensemble use it"},
	{"localSessionsUpgradingEnabled", noEffect, "", "only members of an ensemble use it"},
	{"quorumListenOnAllIPs", noEffect, "", "only members of an ensemble use it"},
	{"quorum.*", noEffect, "", "only members of an ensemble use it"},
	{"multiAddress.*", noEffect, "", "only members of an ensemble use it"},
	{"oraclePath", noEffect, "", "only members of an ensemble use it"},
	{"readonlymode.enabled", obeyed, "", "the word isro is answered; a standalone server has no ensemble to lose"},
	{"skipReconfig*", noEffect, "", "only members of an ensemble use it"},
}

// keyOf returns the row of a key, and whether there is one.
func keyOf(name string) (zooKey, bool) {
	best, found := zooKey{}, false
	for _, k := range zooKeys {
		prefix, many := strings.CutSuffix(k.name, "*")
		if k.name == name {
			return k, true
		}
		if many && strings.HasPrefix(name, prefix) && len(k.name) > len(best.name) {
			best, found = k, true
		}
	}
	return best, found
}

// checkUnused warns of keys that have no effect, and reports errors for those that are refused.
func (z *file) checkUnused() {
	for _, name := range slices.Sorted(maps.Keys(z.values)) {
		p := z.values[name]
		k, known := keyOf(name)
		switch {
		case !known:
			z.warn(fmt.Sprintf("line %d: unknown key %s has no effect%s", p.Line, name, meant(name)))
		case k.effect == warned:
			z.warn(fmt.Sprintf("line %d: %s has no effect: %s", p.Line, name, k.why))
		case k.effect == refused && !strings.EqualFold(p.Value, k.harmless):
			z.refuse(name, p, k.why)
		}
	}
}

// refuse reports an error for a key that the configuration relies on.
func (z *file) refuse(name string, p javafile.Property, why string) {
	z.fail(p, "%s=%s is not supported: %s; see docs/zoo-cfg.md", name, p.Value, why)
}
