package discovery

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

// newPicker returns a picker that knows n instances, and its clock.
func newPicker(t *testing.T, s Strategy, n int) (*picker, *time.Time) {
	t.Helper()
	e, err := Ejection{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1, 0)
	p := &picker{strategy: s, ejection: e, now: func() time.Time { return now }}
	p.replace(instances(n))
	return p, &now
}

func instances(n int) []found {
	var all []found
	for i := range n {
		name := strconv.Itoa(i)
		all = append(all, found{name: name, born: 1, instance: Instance{Service: "s", ID: name}})
	}
	return all
}

func (p *picker) mustPick(t *testing.T, except ...*Use) *Use {
	t.Helper()
	u, err := p.pick(except)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Promise: 17
func TestRoundRobinGivesEachItsTurn(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, RoundRobin, 3)
	got := ""
	var gotSb45 strings.Builder
	for range 7 {
		u := p.mustPick(t)
		gotSb45.WriteString(u.Instance.ID)
		u.Done(nil)
	}
	got += gotSb45.String()
	if got != "0120120" {
		t.Errorf("picked %s", got)
	}
}

// Every Pick needs the mutex that these hold. Each look at all instances asks for the time, so that the number of looks
// can be counted: it must not depend on the number of instances.
func TestManyInstancesAreLookedAtFewTimes(t *testing.T) {
	t.Parallel()
	const n = 2000
	for _, s := range []Strategy{RoundRobin, Random, Sticky, LeastOutstanding} {
		p, now := newPicker(t, s, n)
		for _, x := range p.known[:n*3/4] { // more than may be out
			x.out = now.Add(time.Hour)
		}
		looks := 0
		p.now = func() time.Time { looks++; return *now }
		p.replace(instances(n))
		for range 10 {
			p.next = 0
			if u := p.mustPick(t); now.Before(u.target.out) {
				t.Fatalf("%v: picked an instance that is out", s)
			}
		}
		if looks > 20 {
			t.Errorf("%v: looked at all instances %d times", s, looks)
		}
	}
}

// Promise: 17
func TestRandomPicksAll(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, Random, 3)
	seen := map[string]bool{}
	for range 1000 {
		seen[p.mustPick(t).Instance.ID] = true
	}
	if len(seen) != 3 {
		t.Errorf("picked %v", seen)
	}
}

// Promise: 17
func TestStickyStaysUntilTheInstanceGoes(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, Sticky, 3)
	first := p.mustPick(t)
	for range 10 {
		if u := p.mustPick(t); u.Instance.ID != first.Instance.ID {
			t.Fatalf("moved from %s to %s", first.Instance.ID, u.Instance.ID)
		}
	}
	var others []found
	for _, f := range instances(3) {
		if f.name != first.Instance.ID {
			others = append(others, f)
		}
	}
	p.replace(others)
	if u := p.mustPick(t); u.Instance.ID == first.Instance.ID {
		t.Error("stays with an instance that has gone")
	}
}

// Promise: 17
func TestLeastOutstandingPicksTheIdlest(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, LeastOutstanding, 3)
	uses := []*Use{p.mustPick(t), p.mustPick(t), p.mustPick(t)}
	seen := map[string]bool{}
	for _, u := range uses {
		seen[u.Instance.ID] = true
	}
	if len(seen) != 3 {
		t.Fatalf("three picks went to %v", seen)
	}
	uses[1].Done(nil)
	uses[1].Done(nil) // counts once
	if u := p.mustPick(t); u.Instance.ID != uses[1].Instance.ID {
		t.Errorf("picked %s instead of %s, which is idle", u.Instance.ID, uses[1].Instance.ID)
	}
}

// Promise: 17
func TestPickLeavesOutWhatWasTried(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, RoundRobin, 2)
	first := p.mustPick(t)
	second := p.mustPick(t, first)
	if first.Instance.ID == second.Instance.ID {
		t.Error("picked the same again")
	}
	if _, err := p.pick([]*Use{first, second}); !errors.Is(err, ErrNoInstance) {
		t.Errorf("%v instead of ErrNoInstance", err)
	}
}

// Promise: 17
func TestInstanceThatFailsIsEjectedForAWhile(t *testing.T) {
	t.Parallel()
	p, now := newPicker(t, Sticky, 3)
	bad := errors.New("bad")
	first := p.mustPick(t)
	fail := func() { // uses the first instance, whether or not it is Sticky's at the moment
		t.Helper()
		p.stuck = first.target
		u := p.mustPick(t)
		if u.target != first.target {
			t.Fatal("it is out")
		}
		u.Done(bad)
	}
	isOut := func() bool {
		p.stuck = first.target
		return p.mustPick(t).target != first.target
	}
	first.Done(bad)
	if isOut() {
		t.Fatal("one failure ejects")
	}
	p.done(first.target, false)
	first.target.outstanding++
	fail()
	if isOut() {
		t.Fatal("failures count that are not in succession")
	}
	fail()
	if !isOut() {
		t.Fatal("two failures in succession do not eject")
	}
	*now = now.Add(30 * time.Second)
	if isOut() {
		t.Fatal("out for longer than 30 s")
	}
	fail()
	*now = now.Add(59 * time.Second)
	if !isOut() {
		t.Fatal("one failure after coming back does not eject for a minute")
	}
	*now = now.Add(time.Second)
	if isOut() {
		t.Fatal("out for longer than a minute")
	}
}

// Promise: 17
func TestAtMostHalfOfTheInstancesAreEjected(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, RoundRobin, 5)
	for range 100 {
		p.mustPick(t).Done(errors.New("all fail"))
	}
	seen := map[string]bool{}
	for range 100 {
		seen[p.mustPick(t).Instance.ID] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d of 5 instances are left", len(seen))
	}
	alone, _ := newPicker(t, RoundRobin, 1)
	for range 10 {
		alone.mustPick(t).Done(errors.New("fails"))
	}
}

// Promise: 17
func TestInstanceThatIsRegisteredAgainStartsAnew(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, RoundRobin, 2)
	for range 4 {
		if u := p.mustPick(t); u.Instance.ID == "0" {
			u.Done(errors.New("fails"))
		}
	}
	again := instances(2)
	p.replace(again)
	if p.known[0].out.IsZero() {
		t.Fatal("a change elsewhere lets an ejected instance in")
	}
	again[0].born = 2
	p.replace(again)
	if !p.known[0].out.IsZero() {
		t.Error("an instance that was registered again is still out")
	}
}

// Promise: 17
func TestInstancesComeBackWhenTheOthersHaveGone(t *testing.T) {
	t.Parallel()
	p, now := newPicker(t, RoundRobin, 4)
	for _, id := range []string{"0", "1"} {
		for p.known[0].out.IsZero() && id == "0" || p.known[1].out.IsZero() && id == "1" {
			if u := p.mustPick(t); u.Instance.ID == id {
				u.Done(errors.New("fails"))
			}
		}
		*now = now.Add(time.Second)
	}
	p.replace(instances(3))
	seen := map[string]bool{}
	for range 10 {
		seen[p.mustPick(t).Instance.ID] = true
	}
	if len(seen) != 2 || !seen["0"] || !seen["2"] {
		t.Errorf("picked %v of 0, 1 and 2; want 2, and 0, which was to come back first", seen)
	}
	p.replace(instances(2))
	if u := p.mustPick(t); u.Instance.ID != "0" {
		t.Errorf("picked %s", u.Instance.ID)
	}
	p.replace(instances(2)[1:])
	p.mustPick(t).Done(errors.New("fails"))
	p.mustPick(t)
}

// Promise: 17
func TestTheLastInstanceIsNotEjected(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, RoundRobin, 3)
	p.ejection.AtMost = 100
	for range 100 {
		p.mustPick(t).Done(errors.New("all fail"))
	}
	if out := p.ejected(); len(out) != 2 {
		t.Errorf("%d of 3 instances are out, want 2", len(out))
	}
}

func TestEjectionsOfCenturiesDoNotOverflow(t *testing.T) {
	t.Parallel()
	p, now := newPicker(t, Sticky, 5)
	p.ejection.For, p.ejection.Max = 1<<62, 3<<61
	bad := p.known[0]
	for _, want := range []time.Duration{1 << 62, 3 << 61, 3 << 61} {
		for range p.ejection.Failures {
			bad.outstanding++
			p.done(bad, true)
		}
		if out := bad.out.Sub(*now); out != want {
			t.Errorf("out for %v, want %v", out, want)
		}
		*now = bad.out
	}
}

func TestWhatIsLearnedOfAnInstanceCounts(t *testing.T) {
	t.Parallel()
	p, now := newPicker(t, Sticky, 5)
	bad := p.known[0]
	end := func(failed bool) {
		bad.outstanding++
		p.done(bad, failed)
	}
	out := func() time.Duration { return bad.out.Sub(*now) }
	end(true)
	end(true)
	if out() != 30*time.Second {
		t.Fatalf("out for %v", out())
	}
	end(true) // picked before
	end(true)
	if out() != 30*time.Second {
		t.Errorf("failures of earlier picks let it be out for %v", out())
	}
	for range 10 {
		*now = bad.out
		end(true)
	}
	if out() != 5*time.Minute {
		t.Errorf("out for %v, want Max", out())
	}
	*now = bad.out
	end(false)
	end(true)
	if out() > 0 {
		t.Error("one failure ejects, although the instance has worked since")
	}
	end(true)
	if out() != 30*time.Second {
		t.Errorf("out for %v after a success", out())
	}
}

func TestNegativeNumberOfFailuresEjectsNone(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, RoundRobin, 3)
	p.ejection.Failures = -1
	for range 100 {
		p.mustPick(t).Done(errors.New("fails"))
	}
	if out := p.ejected(); len(out) > 0 {
		t.Errorf("%d instances are out", len(out))
	}
}

func TestLeastOutstandingPicksAnyOfTheIdlest(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, LeastOutstanding, 3)
	seen := map[string]bool{}
	for range 1000 {
		u := p.mustPick(t)
		seen[u.Instance.ID] = true
		u.Done(nil)
	}
	if len(seen) != 3 {
		t.Errorf("picked %v", seen)
	}
}

func TestUpdatedInstanceIsPickedAsItIsNow(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, RoundRobin, 1)
	all := instances(1)
	all[0].instance.Port = 81
	p.replace(all)
	if u := p.mustPick(t); u.Instance.Port != 81 {
		t.Errorf("port %d", u.Instance.Port)
	}
}

func TestInstanceThatWasTriedIsLeftOutAlsoIfItWasRegisteredAgain(t *testing.T) {
	t.Parallel()
	p, _ := newPicker(t, RoundRobin, 1)
	first := p.mustPick(t)
	again := instances(1)
	again[0].born = 2
	p.replace(again)
	if _, err := p.pick([]*Use{first}); !errors.Is(err, ErrNoInstance) {
		t.Errorf("%v instead of ErrNoInstance", err)
	}
}
