package interop_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
)

// TestCopyOnAnotherServerWorksAsTheOriginal copies a tree with "turnstile export" and "turnstile import", from each
// server to each: data, access lists, the numbers of sequential nodes, and a queue of which a part was taken.
func TestCopyOnAnotherServerWorksAsTheOriginal(t *testing.T) {
	t.Parallel()
	binary := command(t)
	hosts := []*host{apache(t, options{}), ours(t, server.Config{Data: t.TempDir()})}
	for _, from := range hosts {
		source := classicClient(t, from, 30*time.Second)
		before := fill(t, source, "/copied")
		file := filepath.Join(t.TempDir(), "copied.jsonl")
		run(t, time.Minute, "sh", "-c", `"$0" export --connect "$1" /copied >"$2"`, binary, from.addr, file)
		for i, to := range hosts {
			t.Run(fmt.Sprintf("from %s to %s", from.name, to.name), func(t *testing.T) {
				t.Parallel()
				path := fmt.Sprintf("/copies%d-%d", slices.Index(hosts, from), i)
				run(t, time.Minute, "sh", "-c", `"$0" import --connect "$1" "$2" <"$3"`, binary, to.addr, path, file)
				checkCopy(t, classicClient(t, to, 30*time.Second), path, before)
			})
		}
	}
}

// copied says what a copy must have.
type copied struct {
	acl    []zk.ACL
	number string   // of the next sequential node
	items  []string // of the queue, in order
}

// fill makes what is copied, at path.
func fill(t *testing.T, client *zk.Client, path string) copied {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	_, err := client.Create(ctx, path, []byte("root"), zk.Persistent)
	must(err)
	jobs := path + "/jobs"
	_, err = client.Create(ctx, jobs, []byte("jobs"), zk.Persistent)
	must(err)
	for range 3 {
		made, err := client.Create(ctx, jobs+"/job-", nil, zk.PersistentSequential)
		must(err)
		if !strings.HasSuffix(made.Path, "0") {
			must(client.Delete(ctx, made.Path, -1))
		}
	}
	acl := []zk.ACL{{Perms: zk.PermAll &^ zk.PermWrite, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
	_, err = client.SetACL(ctx, jobs, acl, -1)
	must(err)

	q, err := queue.New(client, path+"/queue", queue.Config{})
	must(err)
	var messages []queue.Message
	var items []string
	for i := range 1500 { // more than a segment has
		items = append(items, fmt.Sprint("item ", i))
		messages = append(messages, queue.Message{Body: []byte(items[i])})
	}
	_, err = q.PutBatch(ctx, messages)
	must(err)
	const taken = 300
	for done := 0; done < taken; {
		some, err := q.TakeBatch(ctx, taken-done)
		must(err)
		must(q.DoneAll(ctx, some))
		done += len(some)
	}
	must(q.Close(ctx))
	return copied{acl, "0000000003", items[taken:]}
}

// checkCopy uses a copy at path as the original would be used.
func checkCopy(t *testing.T, client *zk.Client, path string, want copied) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // if items are missing
	defer cancel()
	jobs := path + "/jobs"
	data, _, err := client.Get(ctx, jobs)
	if err != nil || string(data) != "jobs" {
		t.Errorf("%s has %q, %v", jobs, data, err)
	}
	if acl, _, err := client.GetACL(ctx, jobs); err != nil || !slices.Equal(acl, want.acl) {
		t.Errorf("%s has the access list %v, %v, want %v", jobs, acl, err, want.acl)
	}
	made, err := client.Create(ctx, jobs+"/job-", nil, zk.PersistentSequential)
	if err != nil || made.Path != jobs+"/job-"+want.number {
		t.Errorf("the next sequential node is %s, %v, want number %s", made.Path, err, want.number)
	}
	q, err := queue.New(client, path+"/queue", queue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Put(ctx, queue.Message{Body: []byte("put into the copy")}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) <= len(want.items) {
		some, err := q.TakeBatch(ctx, 1000)
		if err != nil {
			t.Fatalf("%v, after %d items of %d", err, len(got), len(want.items)+1)
		}
		for _, item := range some {
			got = append(got, string(item.Body()))
		}
		if err := q.DoneAll(ctx, some); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, append(slices.Clone(want.items), "put into the copy")) {
		t.Errorf("the copy of the queue has %d items, beginning with %q, want %d from %q on, and one more",
			len(got), got[0], len(want.items), want.items[0])
	}
	if left, err := q.Len(ctx); err != nil || left != (queue.Counts{}) {
		t.Errorf("the emptied copy has %+v, %v", left, err)
	}
	if err := q.Close(ctx); err != nil {
		t.Error(err)
	}
}

// command builds the program turnstile.
func command(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "turnstile")
	run(t, buildLimit, "go", "build", "-o", binary, "../../cmd/turnstile")
	return binary
}
