package cli

import (
	"maps"
	"testing"
	"time"
)

// The answers of Apache ZooKeeper 3.8.0.
func TestAnswersToConsAndDumpAreUnderstood(t *testing.T) {
	t.Parallel()
	list := parseCons(" /127.0.0.1:40000[1](queued=0,recved=5,sent=5,sid=0xff00000000000001,lop=GETD," +
		"est=1700000000000,to=10000,lcxid=0x3,lzxid=0x7,lresp=1234567,llat=0,minlat=0,avglat=0,maxlat=3)\n" +
		" /[0:0:0:0:0:0:0:1]:40001[0](queued=0,recved=1,sent=0)\r\n\n" +
		" /[2001:db8::1]:40002[1](queued=0,sid=0x2,to=99999999999999999999,est=18446744073709551615,x)\n" +
		"rubbish\n /x[1](sid=)\n /[1](\n")
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	one, two := list[0], list[1]
	if uint64(one.id) != 0xff00000000000001 || one.address != "127.0.0.1:40000" || one.timeout != 10*time.Second ||
		one.connected.Unix() != 1_700_000_000 || !one.answered.IsZero() {
		t.Errorf("%+v", one)
	}
	if two.id != 2 || two.address != "[2001:db8::1]:40002" || two.timeout != 0 {
		t.Errorf("%+v", two)
	}
	// Those of Turnstile's own server, and of an Apache server that tells the time of the day.
	list = parseCons(" /127.0.0.1:40000[1](queued=0,sid=0x1,est=1700000000000,lresp=1700000001234)\n")
	if len(list) != 1 || list[0].answered.UnixMilli() != 1_700_000_001_234 {
		t.Errorf("%+v", list)
	}
	nodes := parseDump("SessionTracker dump:\nSession Sets (2)/(1):\n0 expire at Fri Nov 27:\n1 expire:\n\t0x5\n" +
		"ephemeral nodes dump:\nSessions with Ephemerals (2):\n0xff00000000000001:\n\t/a/b\n\t/c: \n0x2:\n\t/d\n" +
		"Connections dump:\nConnections Sets (1)/(1):\n\t/e\n0xzz:\n\t/f\n")
	if want := map[int64]int{-0xffffffffffffff: 2, 2: 1}; !maps.Equal(nodes, want) {
		t.Errorf("got %v, want %v", nodes, want)
	}
	if nodes := parseDump("nothing"); len(nodes) != 0 {
		t.Error(nodes)
	}
}
