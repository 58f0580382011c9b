package interop_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

const (
	python   = "/usr/bin/python3" // Debian's, which finds Debian's kazoo
	kazooDir = "/usr/lib/python3/dist-packages/kazoo/tests"
)

// suite lists kazoo's test modules, in groups that run concurrently, each on a server of its own. A minus leaves out
// a test that needs an ensemble.
var suite = map[string][]string{
	// Without TestSSLClient, for which kazoo 2.11 starts a server of its own.
	// Without test_connection_dropped: it wants a write of a megabyte to fail because kazoo then drops the connection.
	// If the thread that asks for the drop has to wait for the processor, the answer comes first.
	"client": {
		"test_client", "-test_client.TestReconfig.test_add_remove_observer", "-test_client.TestReconfig.test_bad_input",
		"-test_client.TestReconfig.test_no_super_auth", "-test_client.TestSSLClient.test_create",
		"-test_client.TestClient.test_update_host_list",
		"test_connection", "-test_connection.TestReadOnlyMode.test_read_only",
		"-test_connection.TestConnectionDrop.test_connection_dropped", "test_queue", "test_counter",
		"test_party", "test_barrier", "test_election", "test_lease",
	},
	// Without test_handle_session_loss: it waits, without a limit, for a semaphore to be woken. If the thread that
	// waits has to wait for the processor, that is over before.
	"lock":    {"test_lock", "-test_lock.TestSemaphore.test_handle_session_loss", "test_watchers"},
	"parties": {"test_partitioner", "test_cache"},
	// Without test_invalid_sasl_auth: kazoo reports a connection before it logs in, so its start succeeds, times out
	// or raises the expected error, depending on which of its threads is faster. TestJavaClientLearnsHowItsLoginEnds
	// tries a wrong password.
	"sasl": {
		"test_sasl.TestLegacySASLDigestAuthentication",
		"-test_sasl.TestLegacySASLDigestAuthentication.test_invalid_sasl_auth",
		"test_sasl.TestSASLDigestAuthentication", "-test_sasl.TestSASLDigestAuthentication.test_invalid_sasl_auth",
	},
}

// TestKazooSuite runs the tests of the installed kazoo.
//
// Promise: 11
func TestKazooSuite(t *testing.T) {
	t.Parallel()
	peer.Need(t, python, kazooDir)
	groups := suite
	if only := os.Getenv("KAZOO_TESTS"); only != "" {
		groups = map[string][]string{"chosen": strings.Fields(only)}
	}
	for name, tests := range groups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, options{sasl: name == "sasl", own: true, foreign: true}, func(t *testing.T, h *host) {
				t.Helper()
				args := append([]string{"testdata/kazoo_suite.py", h.addr, h.control(t)}, tests...)
				if h.apache {
					args = append(args, notOnApache...)
				}
				run(t, 10*time.Minute, python, args...)
			})
		})
	}
}

// notOnApache are tests that resume a session on a server that was killed. ZooKeeper 3.8.0 sometimes loses that
// session.
var notOnApache = []string{
	"-test_client.TestClient.test_request_queuing_session_recovered",
	"-test_client.TestClient.test_request_queuing_session_expired",
}
