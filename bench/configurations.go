package main

// serverConfigurations tell how the servers of both parts were configured.
var serverConfigurations = []fact{
	{"ZooKeeper 3.8.0", "Debian's package, standalone, durable (forceSync: every request is on the disk before its answer), tickTime 2000, -Xmx1000m, one log device"},
	{"turnstile serve", "the embedded server in a process of its own, durable (one synchronous commit for all requests that wait), default configuration"},
	{"the embedded server", "the same as a library, in a process that can be asked for its live memory"},
	{"Redis", "one server; volatile: `--save \"\" --appendonly no`; durable: `--save \"\" --appendonly yes --appendfsync always`"},
}

// lockConfigurations tell how those who lock were configured.
var lockConfigurations = []fact{
	{"etcd", "one member, durable (its log is synchronised before an answer), default configuration"},
	{"Turnstile", "packages `zk` and `lock` of this repository, one client with one `Mutex` for each path, default configuration: goroutines of one process pass the lock on at most 64 times, or for 50 ms, while another process waits; an unlock does not wait for the server, the round does"},
	{"Turnstile, StrictFIFO", "`Config{Handoff: lock.StrictFIFO}`: a place in the servers' line for each acquisition"},
	{"Turnstile, Retain", "`Config{Retain: time.Minute}`"},
	{"go-zookeeper", "one connection, a `zk.NewLock` for each goroutine"},
	{"Curator", "one client, an `InterProcessMutex` for each thread, `ExponentialBackoffRetry(100, 3)`, -Xmx1000m -XX:+UseSerialGC"},
	{"kazoo", "one client, a `Lock` for each thread"},
	{"etcd's Mutex", "one client, a `concurrency.Session` (a lease of 30 s) for each goroutine, because the mutex is re-entrant within one"},
	{"redsync", "one pool, expiry one minute, as many tries as it takes, default delays"},
	{"redislock", "TTL one minute, `LinearBackoff(100ms)`"},
}

// lockMethods tell what figures mean that do not explain themselves.
var lockMethods = []fact{
	{"cycles/s", "locks that were taken and given back, of all goroutines and processes together, over the time until the last had ended"},
	{"p50, p99, max", "of one round; the table has the medians of the rounds. A lock that is not fair serves few quickly and lets the others wait: see its max"},
	{"two at once", "loads that trace every cycle check that nobody had the lock before the one before had begun to give it back, and fail otherwise"},
	{"client memory", "Go: heap and stacks after a garbage collection; Java: heap after a garbage collection, without the threads' stacks; Python: resident memory"},
	{"server memory", "live bytes of the embedded server after a garbage collection, with the waiters there less without. ZooKeeper's heap, after a full collection, differs by more than that from one moment to the next, so it has no row"},
	{"watch events", "by the server's own counters (`mntr`): packets sent, less packets received"},
}

// queueConfigurations tell how those who put and take were configured.
var queueConfigurations = []fact{
	{"items", "100 bytes each, and no two alike"},
	{"Turnstile", "package `queue` of this repository, one client and one `Queue`, default configuration: at least once, by priority and then arrival; it claims up to 200 items ahead, in one transaction for many, and `Done` is one durable write; batches by `PutBatch`"},
	{"Curator SimpleDistributedQueue", "one client, `offer` and `take`: an item is removed when it is taken, and lost when its consumer dies then; it lists the whole queue for each item; `ExponentialBackoffRetry(100, 3)`, -Xmx1000m -XX:+UseSerialGC"},
	{"Curator DistributedQueue", "with a lock path, so at least once; `putInBackground(false)`, so that a put is durable when it returns; one consumer that lets items wait until they are to be taken, on its own thread or, for 16 in flight, on a pool of 16; batches by `putMulti`: one node that is taken as one item"},
	{"kazoo Queue", "one client, a `Queue` for each thread: an item is removed when it is taken; it lists the whole queue when it has used up its last list; `get` does not wait, so for latencies it is called every millisecond"},
	{"kazoo LockingQueue", "one client, a `LockingQueue` for each thread, `get` and `consume`: it lists the whole queue, and all that is locked, for each item; batches by `put_all`"},
	{"BLMOVE on Redis", "the reliable queue of Redis' documentation: `RPUSH`, `BLMOVE` to a second list, `LREM` from there when it is done. What a dead consumer has taken stays in the second list until somebody moves it back, which is left to the user; batches by one `RPUSH`"},
}

// queueMethods tell what figures mean that do not explain themselves.
var queueMethods = []fact{
	{"put", "items/s of one producer that waits for each answer, into a queue that has the given depth at first and grows meanwhile; Curator's DistributedQueue makes one node of a batch, which is taken whole. With Redis volatile, and only there, an answer does not mean that the item is on the disk"},
	{"take + done", "items/s from a queue that has the given depth at first, and is filled up again whenever it is half empty, and after each round; filling is not measured. After all rounds the number of items on the server must be what it was, or the run fails"},
	{"16 in flight", "16 goroutines or threads of one process that take from one queue"},
	{"from a put until the item is there", "of one item after the other, in an empty queue, one process with a client for each side. The next item is put when this one is acknowledged, except with Curator's DistributedQueue, whose acknowledgement nobody can wait for"},
	{"cannot", "found by trying: what the client says when it is to take from a queue so deep. Curator's client is tried again with a jute.maxbuffer that is large enough"},
	{"server memory", "live bytes with the items there less without, by the number of items. Embedded server: heap after a garbage collection; ZooKeeper: heap after a full collection (`jcmd GC.class_histogram`), after 600 small transactions that push the puts out of its log of the last 500; Redis: `used_memory`"},
	{"memory of one consumer", "live bytes after all rounds less those before its first item. Go and Java: heap after a garbage collection (Go with stacks); Python: resident memory"},
	{"a million items", "on the embedded server, beside the same queue with a thousand on the same server in the same rounds, and beside Redis; ours must keep within 20 %"},
}

// queueSummary says what to read the figures of queues for.
const queueSummary = "Compare what promises the same: at-least-once delivery needs a second durable write an item (a claim and its end), which Turnstile shares among the items that it claims together.\n" +
	"The peers on ZooKeeper list the queue to take from it, so their figures fall with its depth, until the list does not fit into a packet; Turnstile's must not."
