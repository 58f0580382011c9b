//go:build unix

package partitions_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

const (
	beginLimit = 30 * time.Second // for all to acquire, or to release, without a partition
	slack      = 20 * time.Second // for contenders to acquire, beyond the longest session timeout
)

// A run is one partition of a shape, with holders of one project or of several.
type run struct {
	scene
	shape   shape
	root    string
	journal *journal
	pairs   []*pair
}

// A pair is a holder and the contender for the same.
type pair struct {
	sample
	kind                   kind
	clean                  func(t *testing.T, root string) // of the project
	path                   string
	holder, other          string // their names
	holderParty, healthier *party // their processes
}

// newRun starts the parties. Holders connect to the leader or to one of its followers, contenders to the other
// servers.
func newRun(t *testing.T, projects []project, sh shape, v venue, phase int, seed uint64) *run {
	t.Helper()
	r := &run{shape: sh, root: fmt.Sprintf("/partitions-%d", clock()), journal: newJournal()}
	r.scene = scene{
		venue: v, t: t, links: v.cluster.Links(),
		rnd:     rand.New(rand.NewPCG(seed, uint64(phase))), //nolint:gosec // not negative
		holders: make(map[int]*party),
	}
	r.cluster.AwaitAll()
	r.leader = r.cluster.AwaitLeader(-1)
	r.at = r.leader
	if !sh.leader {
		r.at = (r.leader + 1 + r.rnd.IntN(r.cluster.Len()-1)) % r.cluster.Len()
	}
	if sh.limits != nil {
		sh.limits(&r.scene)
		r.cluster.AwaitAll()
		if now := r.cluster.AwaitLeader(-1); now != r.leader {
			t.Fatalf("server %d leads, want %d as before: the others were restarted one by one", now, r.leader)
		}
	}
	for _, p := range projects {
		variants := p.variants
		if sh.limits != nil {
			variants = 1
		}
		healthier := p.start(t, r.journal)
		for _, timeout := range timeouts {
			holders := healthier
			if p.processes {
				holders = p.start(t, r.journal)
				r.holders[timeout] = holders
			}
			for _, k := range p.kinds {
				for _, free := range []bool{false, true}[:variants] {
					what := fmt.Sprintf("%s/%s/%d/%t", p.name, k.name, timeout, free)
					r.pairs = append(r.pairs, &pair{
						sample: sample{
							project: p.name, shape: sh.name, phase: phase, kind: k.name, timeout: timeout,
							tick: v.tick, free: free,
						},
						kind: k, clean: p.clean, path: fmt.Sprintf("%s/%s-%s-%d-%t", r.root, p.name, k.name, timeout,
							free),
						holder: "holder/" + what, other: "other/" + what, holderParty: holders, healthier: healthier,
					})
				}
			}
		}
	}
	return r
}

// play acquires, partitions, and waits for the consequences.
func (r *run) play() {
	r.t.Helper()
	if !r.begin() {
		return
	}
	r.wait(r.ticks(2, 4)) // no event shows that the contenders wait; and so the fault falls at any phase of the ticks
	defer r.links.Heal()
	r.act()
	pinned := r.names(func(p *pair) bool { return !p.free }, otherName)
	limit := time.Duration(slices.Max(timeouts)+10)*r.tick + slack
	if r.shape.heals {
		// A hold that lasts until then outlasts the partition.
		r.wait(time.Duration(float64(slices.Max(timeouts))*1.25+1) * r.tick)
	} else if _, err := r.journal.await(pinned, "acquired", limit); err != nil {
		r.t.Error(err)
	}
	r.links.Heal()
	r.cluster.AwaitAll()
	taken := r.takeOver(limit)
	r.judge()
	if taken {
		r.again()
	}
}

func (r *run) act() { r.shape.act(&r.scene) }

// begin makes the holders acquire and the contenders wait.
func (r *run) begin() bool {
	r.t.Helper()
	all := r.links.ConnectString(r.client)
	at := r.links.Addr(r.client, r.at)
	var healthy []int
	r.others(func(j int) { healthy = append(healthy, j) })
	first := at
	if r.shape.limits != nil {
		first = r.links.ConnectString(r.client, healthy...)
	}
	for _, p := range r.pairs {
		then := at
		if p.free {
			then = all
		}
		p.holderParty.say(r.t, "join", p.holder, p.holder, p.kind.holder, first, then, p.path, r.ms(p.timeout))
	}
	if missing, err := r.journal.await(r.names(nil, holderName), "acquired", beginLimit); err != nil ||
		len(missing) > 0 {
		r.t.Errorf("did not acquire: %v %v", missing, err)
		return false
	}
	servers := r.links.ConnectString(r.healthier, healthy...)
	for _, p := range r.pairs {
		client := fmt.Sprintf("others/%s/%d", p.project, p.timeout)
		p.healthier.say(r.t, "join", p.other, client, p.kind.other, servers, servers, p.path,
			r.ms(slices.Max(timeouts)))
	}
	return true
}

// takeOver makes the holders release that still hold, and waits until all contenders have acquired. It reports
// whether they have.
func (r *run) takeOver(limit time.Duration) bool {
	r.t.Helper()
	for _, p := range r.pairs {
		_, told := r.journal.get(p.holder, "told")
		if _, acquired := r.journal.get(p.other, "acquired"); !told && !acquired {
			p.kept = true
			p.holderParty.say(r.t, "leave", p.holder)
		}
	}
	kept := func(p *pair) bool { return p.kept }
	if _, err := r.journal.await(r.names(kept, holderName), "left", beginLimit); err != nil {
		r.t.Error(err)
	}
	for _, p := range r.pairs {
		if left, _ := r.journal.get(p.holder, "left"); p.kept && left.why != "ok" {
			p.kept = false // its hold ended at that moment
			r.t.Logf("%v: asked to release: %s", &p.sample, left.why)
		}
	}
	missing, err := r.journal.await(r.names(nil, otherName), "acquired", limit)
	if err != nil {
		r.t.Error(err)
		return false
	}
	untold, err := r.journal.await(r.names(nil, holderName), "told", beginLimit)
	if err != nil {
		r.t.Error(err)
	}
	return len(missing)+len(untold) == 0
}

// judge completes the samples, and fails the test for each one that breaks the promise.
func (r *run) judge() {
	r.t.Helper()
	var smallest *sample
	for _, p := range r.pairs {
		told, _ := r.journal.get(p.holder, "told")
		lost, _ := r.journal.get(p.holder, "lost")
		acquired, _ := r.journal.get(p.other, "acquired")
		p.cut, p.told, p.lost, p.acquired, p.why = r.cutAt, told.at, lost.at, acquired.at, told.why
		_, p.released = r.journal.get(p.holder, "released")
		results.add(p.sample)
		wrong := p.wrong()
		if r.healedAt > 0 && !p.kept && wrong == "" &&
			time.Duration(r.healedAt-r.cutAt) < r.tick*time.Duration(p.timeout)/4 {
			wrong = fmt.Sprintf(
				"the hold ended (%s) although the partition lasted less than a quarter of the session timeout", p.why)
		}
		switch {
		case wrong != "" && p.clean != nil:
			r.t.Errorf("%v: %s", &p.sample, wrong)
		case wrong != "":
			r.t.Logf("%v: %s", &p.sample, wrong)
		case p.kept:
			r.t.Logf("%v: kept", &p.sample)
		default:
			if p.released {
				r.t.Logf("%v: told %v after the cut, then released", &p.sample, p.since(p.told))
				continue
			}
			if smallest == nil || p.distance() < smallest.distance() {
				smallest = &p.sample
			}
			r.t.Logf("%v: told %v after the cut, %v before the contender acquired (%s)",
				&p.sample, p.since(p.told), p.distance().Round(time.Millisecond), p.why)
		}
	}
	if smallest != nil {
		r.t.Logf("%s: the closest call was %v, with %v", r.shape.name, smallest.distance().Round(time.Millisecond),
			smallest)
	}
}

// again checks that nothing of ours is left behind: the contenders release, the holders acquire and release again,
// and then no ephemeral node is left.
func (r *run) again() {
	r.t.Helper()
	r.pairs = slices.DeleteFunc(r.pairs, func(p *pair) bool { return p.clean == nil })
	if len(r.pairs) == 0 {
		return
	}
	for _, p := range r.pairs {
		p.healthier.say(r.t, "leave", p.other)
	}
	r.left(otherName)
	all := r.links.ConnectString(r.client)
	again := func(p *pair) string { return p.holder + "/again" }
	for _, p := range r.pairs {
		p.holderParty.say(r.t, "join", again(p), p.holder, p.kind.again, all, all, p.path, r.ms(p.timeout))
	}
	if missing, err := r.journal.await(r.names(nil, again), "acquired", beginLimit); err != nil || len(missing) > 0 {
		r.t.Errorf("did not acquire after the partition: %v %v", missing, err)
		return
	}
	for _, p := range r.pairs {
		p.holderParty.say(r.t, "leave", again(p))
	}
	r.left(again)
	r.left(holderName)
	for _, p := range r.pairs {
		p.clean(r.t, p.path)
	}
}

// left waits until all have left. A hold that ends meanwhile breaks no promise: short timeouts do not outlast every
// stall of a busy machine.
func (r *run) left(who func(*pair) string) {
	r.t.Helper()
	names := r.names(nil, who)
	if missing, err := r.journal.await(names, "left", beginLimit); err != nil || len(missing) > 0 {
		r.t.Errorf("did not release: %v %v", missing, err)
	}
}

func holderName(p *pair) string { return p.holder }
func otherName(p *pair) string  { return p.other }

// names returns the names of the pairs that choose picks; nil picks all.
func (r *run) names(choose func(*pair) bool, name func(*pair) string) []string {
	var list []string
	for _, p := range r.pairs {
		if choose == nil || choose(p) {
			list = append(list, name(p))
		}
	}
	return list
}

func (r *run) ms(ticks int) string {
	return strconv.FormatInt((time.Duration(ticks) * r.tick).Milliseconds(), 10)
}
