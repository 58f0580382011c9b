package peer_test

import (
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

func TestEnsembleGoesOnWithoutTheServerThatIsCutOff(t *testing.T) {
	t.Parallel()
	zk := peer.Ensemble(t, 3, peer.Options{
		Links: true,
		Keys:  map[string]string{"syncLimit": "10"}, // in ticks of 200 ms: who is cut off is missed after 2 s
	})
	links := zk.Links()
	client := links.Client()
	if _, err := zk.Word(0, "ruok"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		first := zk.AwaitLeader(-1)
		links.CutOff(first)
		start := time.Now()
		second := zk.AwaitLeader(first)
		t.Logf("leader %d after %v", second, time.Since(start))
		links.Heal()
		zk.AwaitAll()
	}
	first := zk.AwaitLeader(-1)
	links.Zombie(first)
	start := time.Now()
	second := zk.AwaitLeader(first)
	t.Logf("leader %d after %v", second, time.Since(start))
	links.Heal()
	zk.AwaitAll()
	if links.Addr(client, 1) == zk.Addr(1) || links.ConnectString(client, 1) != links.Addr(client, 1) {
		t.Errorf("got %s and %s for the client's link to server 1 at %s",
			links.Addr(client, 1), links.ConnectString(client, 1), zk.Addr(1))
	}
}

func TestEtcdGoesOnWithoutTheServerThatIsCutOff(t *testing.T) {
	t.Parallel()
	// With its own timeouts of 0.1 and 1 s a busy machine elects and elects.
	etcd := peer.Etcd(t, 3, "--heartbeat-interval=500", "--election-timeout=5000")
	links := etcd.Links()
	first := etcd.AwaitLeader(-1)
	links.CutOff(first)
	etcd.AwaitLeader(first)
	links.Heal()
	etcd.AwaitAll()
	first = etcd.AwaitLeader(-1)
	links.Zombie(first)
	etcd.AwaitLeader(first)
	links.Heal()
	etcd.AwaitAll()
}
