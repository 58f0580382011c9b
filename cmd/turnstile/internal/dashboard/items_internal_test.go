package dashboard

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
)

// What is told of items is seen, their bodies and headers only if the dashboard may show data, and nothing of a path
// that it does not show.
func TestItemsOfAQueueAreListedAndFound(t *testing.T) {
	t.Parallel()
	w, s := ordinary()
	closed, open := board(t, w, s, Config{}), board(t, w, s, Config{Data: true})
	data := []string{"to: &lt;ann&gt;\nhidden\\x1b</pre>", "bytes more", "traceparent", "00-1"}
	for _, c := range []struct {
		d             *Dashboard
		path          string
		wanted, never []string
	}{
		{closed, "/items?path=/queues/mail", []string{
			"item6", `href="item?id=item6&amp;path=%2Fqueues%2Fmail"`,
			`href="items?kind=dead&amp;path=%2Fqueues%2Fmail"`,
		}, []string{"item7", "There are more"}},
		{closed, "/items?path=/queues/mail&kind=delayed", []string{"No item is in this state."}, nil},
		{closed, "/items?path=/queues/mail&kind=nonsense", []string{"item6"}, nil},
		{closed, "/items?path=/queues/old", []string{"no queue at this path whose items are read"}, nil},
		{closed, "/items?path=/gone", []string{"no queue at this path whose items are read"}, nil},
		{closed, "/items", []string{"no queue at this path whose items are read"}, nil},
		{closed, "/item?path=/queues/mail&id=item7", []string{
			"item7", ">dead<", ">20<", "2000 bytes", "20 attempts failed", "the first", "the last", "customer-7",
			">30s<", "--show-data",
		}, append(data, "to: ")},
		{closed, "/item?path=/queues/mail&id=+item7+", []string{"20 attempts failed"}, nil},
		{closed, "/item?path=/queues/mail&id=gone", []string{"There is no such item now"}, nil},
		{closed, "/item?path=/queues/mail", []string{"Which item?"}, nil},
		{closed, "/item?path=/gone&id=item7", []string{"no queue at this path"}, []string{"20 attempts failed"}},
		{open, "/item?path=/queues/mail&id=item7", append(data, "1983 bytes more"), []string{"--show-data"}},
	} {
		body := get(c.d, c.path).Body.String()
		for _, want := range c.wanted {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not show %q:\n%s", c.path, want, body)
			}
		}
		for _, never := range c.never {
			if strings.Contains(body, never) {
				t.Errorf("%s shows %q", c.path, never)
			}
		}
	}
}

// Viewers may ask for any number of items. They are looked for one after the other, as each may cost much.
func TestOneItemIsLookedForAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := (&world{}).source()
		var looking, most atomic.Int32
		source.Item = func(context.Context, string, string) (ensemble.Item, error) {
			most.Store(max(most.Load(), looking.Add(1)))
			time.Sleep(time.Second) // in a bubble
			looking.Add(-1)
			return ensemble.Item{}, ensemble.ErrTooMany
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d := New(ctx, source, Config{Root: "/", Audit: t.Logf})
		d.collector.take(&survey.Snapshot{
			Mode: survey.Live, Listed: 1, Entries: []survey.Entry{{Path: "/q", Kind: survey.Queue}},
		}, time.Now())
		for _, id := range []string{"a", "b", "c", "d"} {
			go get(d, "/item?path=/q&id="+id)
		}
		time.Sleep(10 * time.Second) // in a bubble
		if most.Load() != 1 {
			t.Errorf("%d are looked for at a time", most.Load())
		}
		for _, id := range []string{"a", "d"} {
			if body := get(d, "/item?path=/q&id="+id).Body.String(); !strings.Contains(body, "turnstile queue show") {
				t.Errorf("it does not say what to do:\n%s", body)
			}
		}
	})
}
