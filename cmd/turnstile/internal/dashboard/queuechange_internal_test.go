package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
)

// send sends a form. Fields are names and values.
func send(d *Dashboard, path string, fields ...string) *httptest.ResponseRecorder {
	v := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		v.Set(fields[i], fields[i+1])
	}
	return ask(d, http.MethodPost, path, v.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

func change(path, do string) string { return "/changequeue?path=" + path + "&do=" + do }

func TestQueuesAreChangedOnceAndWithWhatIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, s := ordinary()
		w.queues["/queues/busy"] = ensemble.Queue{Ready: 1}
		w.queues["/queues/fails"] = ensemble.Queue{Dead: 3}
		w.queues["/elsewhere"] = ensemble.Queue{Dead: 3} // not below the dashboard's path
		for _, path := range []string{"/queues/busy", "/queues/fails"} {
			s.Entries = append(s.Entries, survey.Entry{Path: path, Kind: survey.Queue})
		}
		slices.SortFunc(s.Entries, func(a, b survey.Entry) int { return strings.Compare(a.Path, b.Path) })
		d := board(t, w, s, Config{Changes: true})
		const mail, busy = "/queues/mail", "/queues/busy"
		newTicket := func(path string) string { return form(t, get(d, path).Body.String()) }
		pause, resume, requeue := change(busy, "pause"), change(mail, "resume"), change(mail, "requeue")
		purge, fails := change(mail, "purge"), change("/queues/fails", "requeue")
		for path, want := range map[string]string{
			mail: "Resume Requeue all Remove all", busy: "Pause", "/queues/fails": "Pause Requeue all Remove all",
			"/queues/old": "", "/gone": "",
		} {
			body := get(d, "/queue?path="+path).Body.String()
			var got []string
			for _, button := range []string{"Pause", "Resume", "Requeue all", "Remove all"} {
				if strings.Contains(body, ">"+button+"</a>") {
					got = append(got, button)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s has the buttons %q, want %q", path, got, want)
			}
		}
		for name, got := range map[string]*httptest.ResponseRecorder{
			"without a ticket":   send(d, resume),
			"another's ticket":   send(d, requeue, "ticket", newTicket(fails)),
			"for another change": send(d, requeue, "ticket", newTicket(resume)),
			"without a reason":   send(d, pause, "ticket", newTicket(pause)),
			"with a long reason": send(d, pause, "reason", strings.Repeat("x", 5000), "ticket", newTicket(pause)),
			"not confirmed":      send(d, purge, "confirm", "queue", "ticket", newTicket(purge)),
			"what is not there":  send(d, change(mail, "explode")),
			"from another site": ask(d, http.MethodPost, resume, "ticket="+newTicket(resume),
				"Content-Type", "application/x-www-form-urlencoded", "Origin", "http://evil.example.com"),
		} {
			if got.Code < 400 {
				t.Errorf("%s: %d", name, got.Code)
			}
		}
		for _, path := range []string{
			change(mail, "pause"), change(busy, "resume"), change(busy, "purge"), change("/gone", "pause"),
			change("/elsewhere", "requeue"), change("/queues/old", "pause"),
		} {
			do := path[strings.LastIndex(path, "=")+1:]
			one := d.changes.issue(ticket{what: do, path: path[len("/changequeue?path="):strings.Index(path, "&")]}, 9)
			sent := send(d, path, "reason", "x", "confirm", "busy", "ticket", one)
			for _, got := range []*httptest.ResponseRecorder{get(d, path), sent} {
				if got.Code == http.StatusSeeOther || strings.Contains(got.Body.String(), "<form") {
					t.Errorf("%s: there is something to do: %d %s", path, got.Code, got.Body)
				}
			}
		}
		synctest.Wait()
		if len(w.changed) > 0 {
			t.Fatalf("changed: %q", w.changed)
		}
		old := newTicket(requeue)
		w.queues[mail] = ensemble.Queue{Dead: 70, Paused: "x"} // ten more have died since the form was made
		time.Sleep(time.Minute)                                // in a bubble: its items are counted anew
		if got := send(d, requeue, "ticket", old); got.Code != http.StatusSeeOther {
			t.Errorf("the form of before: %d %s", got.Code, got.Body)
		}
		synctest.Wait()
		for path, fields := range map[string][]string{
			pause: {"reason", " new <b> "}, resume: nil, requeue: nil, purge: {"confirm", "mail"}, fails: nil,
		} {
			one := newTicket(path)
			got := send(d, path, append(fields, "ticket", one)...)
			if to := got.Header().Get("Location"); got.Code != http.StatusSeeOther ||
				!strings.HasPrefix(to, "queue?path=%2Fqueues%2F") {
				t.Errorf("%s: %d, to %s", path, got.Code, to)
			}
			if got := send(d, path, append(fields, "ticket", one)...); got.Code != http.StatusUnprocessableEntity {
				t.Errorf("%s, again: %d", path, got.Code)
			}
			synctest.Wait()
		}
		slices.Sort(w.changed)
		want := "[/queues/busytruenew <b> /queues/failsfalse 3 /queues/mailfalse /queues/mailfalse 60 " +
			"/queues/mailfalse 70 /queues/mailtrue 70]"
		if fmt.Sprint(w.changed) != want {
			t.Errorf("got %q, want %q", w.changed, want)
		}
		for page, want := range map[string][]string{
			"/queue?path=" + busy:       {"Pause ", "done", "new &lt;b&gt;", "192.0.2.1"},
			"/queue?path=/queues/fails": {"Requeue dead letters", "not done: not there"},
			"/changes":                  {"new &lt;b&gt;", "Resume", "Remove dead letters", "6 changes"},
		} {
			shown := get(d, page).Body.String()
			for _, want := range want {
				if !strings.Contains(shown, want) {
					t.Errorf("%s does not show %q:\n%s", page, want, shown)
				}
			}
		}
		for _, path := range []string{"/queue?path=" + mail, change(mail, "resume")} {
			if got := get(board(t, w, s, Config{}), path).Body.String(); strings.Contains(got, "changequeue") {
				t.Errorf("%s: a dashboard that changes nothing offers it", path)
			}
		}
	})
}

// What takes long shows how far it is, and can be ended.
func TestLongChangesCanBeStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, s := ordinary()
		w.letters = make(chan int)
		d := board(t, w, s, Config{Changes: true})
		requeue := change("/queues/mail", "requeue")
		begin := func() int { return send(d, requeue, "ticket", form(t, get(d, requeue).Body.String())).Code }
		if code := begin(); code != http.StatusSeeOther {
			t.Fatal(code)
		}
		w.letters <- 20
		w.letters <- 7
		synctest.Wait()
		for _, page := range []string{"/queue?path=/queues/mail", "/changes"} {
			if got := get(d, page).Body.String(); !strings.Contains(got, "27 of 60 so far") ||
				!strings.Contains(got, `action="stop?id=1"`) {
				t.Errorf("%s does not show how far it is:\n%s", page, got)
			}
		}
		for _, id := range []string{"", "2", "x"} {
			if got := send(d, "/stop?id="+id); got.Code != http.StatusNotFound {
				t.Errorf("stopping %q: %d", id, got.Code)
			}
		}
		if got := send(d, "/stop?id=1"); got.Code != http.StatusSeeOther || got.Header().Get("Location") != "changes" {
			t.Errorf("stopping it: %d %v", got.Code, got.Header())
		}
		synctest.Wait()
		got := get(d, "/changes").Body.String()
		if !strings.Contains(got, "stopped after 27 dead letters") || strings.Contains(got, "action=\"stop") {
			t.Errorf("it is not shown as stopped:\n%s", got)
		}
		if got := send(d, "/stop?id=1"); got.Code != http.StatusNotFound {
			t.Errorf("stopping it again: %d", got.Code)
		}
		if code := begin(); code != http.StatusSeeOther {
			t.Fatal(code)
		}
		if code := begin(); code != http.StatusUnprocessableEntity {
			t.Errorf("another is begun beside it: %d", code)
		}
		for range 2 * maxActions { // what is under way stays, to be stopped
			d.changes.begin(&actionOf{path: "/queues/mail", over: true, at: time.Now()})
		}
		if got := get(d, "/queue?path=/queues/mail").Body.String(); len(d.changes.actions) > maxActions ||
			!strings.Contains(got, `action="stop?id=2"`) {
			t.Errorf("what is under way is not on the page, of %d changes", len(d.changes.actions))
		}
		for i := range maxRunning + 1 {
			if begun := d.changes.begin(&actionOf{at: time.Now()}); begun != (i < maxRunning-1) {
				t.Errorf("change %d is begun: %t", i, begun)
			}
		}
		d.stop()
		synctest.Wait()
		for _, a := range d.changes.actions {
			if a.long && !a.over {
				t.Error("it goes on after the dashboard")
			}
		}
	})
}
