package interop_test

// Barriers of ours, Curator's and kazoo's on one path.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/zk"
)

// barrierPatience bounds the wait for an answer. It is no measure: a machine may be busy.
const barrierPatience = time.Minute

// A meeting is one barrier with parties of several projects, each with a name.
type meeting struct {
	t       *testing.T
	path    string
	sess    *zk.Session
	answers chan string               // "NAME COMMAND" when a command is done
	order   map[string]func(c string) // how a party gets a command
	kill    map[string]func()
}

func newMeeting(t *testing.T, h *host, path string, parties int, session time.Duration) *meeting {
	t.Helper()
	m := &meeting{
		t: t, path: path, answers: make(chan string, 100), order: make(map[string]func(string)),
		kill: make(map[string]func()),
	}
	var err error
	if m.sess, err = classicClient(t, h, queueSession).Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	args := []string{h.addr, millis(session), path, strconv.Itoa(parties)}
	m.process([]string{"curator1", "curator2"}, "java", ownArgs(t, "BarrierPeer", args...)...)
	m.process([]string{"kazoo1", "kazoo2"}, python, append([]string{"testdata/barrier_peer.py"}, args...)...)
	for _, name := range []string{"ours1", "ours2"} {
		m.ours(name, h, parties, session)
	}
	return m
}

// process starts a process with the parties.
func (m *meeting) process(names []string, program string, args ...string) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			m.answers <- lines.Text()
		}
	})
	stop := sync.OnceFunc(func() {
		cancel()
		reading.Wait()
		_ = cmd.Wait() // it was killed
	})
	m.t.Cleanup(stop)
	for _, name := range names {
		m.order[name] = func(command string) {
			if _, err := io.WriteString(in, name+" "+command+"\n"); err != nil {
				m.t.Errorf("%s: %v", name, err)
			}
		}
		m.kill[name] = stop
	}
}

// ours adds a party of ours.
func (m *meeting) ours(name string, h *host, parties int, session time.Duration) {
	m.t.Helper()
	client := classicClient(m.t, h, session)
	double, err := barrier.NewDouble(client, m.path, parties, barrier.Config{})
	if err != nil {
		m.t.Fatal(err)
	}
	plain, err := barrier.NewBarrier(client, m.path, barrier.Config{})
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	m.t.Cleanup(func() {
		cancel()
		calls.Wait()
	})
	var member *barrier.Member
	m.kill[name] = func() { _ = client.Close() }
	m.order[name] = func(command string) {
		calls.Go(func() {
			var err error
			switch command {
			case "enter":
				member, err = double.Enter(ctx)
			case "leave":
				err = member.Leave(ctx)
			case "set":
				err = plain.Set(ctx)
			case "remove":
				err = plain.Remove(ctx)
			default:
				err = plain.Wait(ctx)
			}
			if err != nil {
				m.answers <- fmt.Sprintf("%s failed to %s: %v", name, command, err)
			} else {
				m.answers <- name + " " + command
			}
		})
	}
}

// tell gives the parties a command.
func (m *meeting) tell(command string, names ...string) {
	for _, name := range names {
		m.order[name](command)
	}
}

// wantDone waits until the parties, and no others, are done with the command.
func (m *meeting) wantDone(command string, names ...string) {
	m.t.Helper()
	var got []string
	limit := time.After(barrierPatience)
	for len(got) < len(names) {
		select {
		case answer := <-m.answers:
			name, did, _ := strings.Cut(answer, " ")
			if did != command || !slices.Contains(names, name) {
				m.t.Fatalf("got %q, want that %v %s; %v did", answer, names, command, got)
			}
			got = append(got, name)
		case <-limit:
			m.t.Fatalf("only %v of %v did %s; children: %v", got, names, command, childrenOf(m.t, m.sess, m.path))
		}
	}
}

// wantMembers waits until there are so many members, while no party is done with anything.
func (m *meeting) wantMembers(n int) {
	m.t.Helper()
	for end := time.Now().Add(barrierPatience); ; {
		names := slices.DeleteFunc(childrenOf(m.t, m.sess, m.path), func(name string) bool { return name == "ready" })
		select {
		case answer := <-m.answers:
			m.t.Fatalf("got %q while others are missing", answer)
		default:
		}
		if len(names) == n {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("got members %v, want %d", names, n)
		}
	}
}

// TestDoubleBarrierOfAllProjects has parties of ours, Curator's and kazoo's enter and leave together, each of them as
// the last in turn.
func TestDoubleBarrierOfAllProjects(t *testing.T) {
	t.Parallel()
	peer.Need(t, "javac", python, kazooDir, zookeeperJar, curatorJar, lockJar, queueJar, electionJar)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		all := []string{"ours1", "curator1", "kazoo1", "ours2", "curator2", "kazoo2"}
		m := newMeeting(t, h, "/together", len(all), queueSession)
		for range all {
			m.tell("enter", all[1:]...)
			m.wantMembers(len(all) - 1)
			m.tell("enter", all[0])
			m.wantDone("enter", all...)
			m.tell("leave", all[1:]...)
			m.wantMembersAtMost(2) // the one that stays, and the lowest
			m.tell("leave", all[0])
			m.wantDone("leave", all...)
			if names := childrenOf(t, m.sess, m.path); len(names) > 0 {
				t.Fatalf("got %v, want nothing left", names)
			}
			all = append(all[1:], all[0])
		}
	})
}

// wantMembersAtMost is wantMembers for a number that depends on the order of the names.
func (m *meeting) wantMembersAtMost(n int) {
	m.t.Helper()
	for end := time.Now().Add(barrierPatience); ; {
		names := slices.DeleteFunc(childrenOf(m.t, m.sess, m.path), func(name string) bool { return name == "ready" })
		select {
		case answer := <-m.answers:
			m.t.Fatalf("got %q while another is inside", answer)
		default:
		}
		if len(names) > 0 && len(names) <= n {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("got members %v, want %d at most", names, n)
		}
	}
}

// TestKilledPartiesOfAnyProject kills the parties of one project: those that wait do not count, and those that are
// inside do not hold up the others.
func TestKilledPartiesOfAnyProject(t *testing.T) {
	t.Parallel()
	peer.Need(t, "javac", python, kazooDir, zookeeperJar, curatorJar, lockJar, queueJar, electionJar)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		victims := []string{"ours1", "curator1", "kazoo1"}
		some := victims[:2] // each is the victim on one of the servers
		if !h.apache {
			some = victims[2:]
		}
		for _, victim := range soak.Pick(some, victims) {
			t.Run(victim, func(t *testing.T) {
				m := newMeeting(t, h, "/killed-"+victim, 3, victimSession)
				all := []string{"ours2", "curator2", "kazoo2"}
				if victim != "ours1" { // its process has both parties of its project
					all = slices.DeleteFunc(all, func(name string) bool { return name[:4] == victim[:4] })
				}
				// A party that dies while it waits does not count.
				m.tell("enter", victim)
				m.wantMembers(1)
				m.tell("enter", all[0])
				m.wantMembers(2)
				m.kill[victim]()
				m.drain(victim)
				m.wantMembers(1)
				rest := all[1:]
				if len(all) < 3 {
					m.ours("ours3", h, 3, queueSession)
					rest = append(slices.Clone(rest), "ours3")
				}
				m.tell("enter", rest...)
				inside := append([]string{all[0]}, rest...)
				m.wantDone("enter", inside...)
				// And one that dies inside does not hold up the others.
				last := inside[len(inside)-1]
				m.tell("leave", inside[:len(inside)-1]...)
				m.wantMembersAtMost(2)
				m.kill[last]()
				m.wantDone("leave", inside[:len(inside)-1]...)
			})
		}
	})
}

// drain ignores what a party that was killed has said.
func (m *meeting) drain(name string) {
	m.t.Helper()
	if strings.HasPrefix(name, "ours") {
		if answer := <-m.answers; !strings.HasPrefix(answer, name+" failed") {
			m.t.Fatalf("got %q", answer)
		}
	}
}

// TestPlainBarrierOfAllProjects has each project wait for a barrier that another one sets and removes.
func TestPlainBarrierOfAllProjects(t *testing.T) {
	t.Parallel()
	peer.Need(t, "javac", python, kazooDir, zookeeperJar, curatorJar, lockJar, queueJar, electionJar)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		m := newMeeting(t, h, "/plain", 1, queueSession)
		if err := m.sess.Delete(t.Context(), m.path, -1); err != nil {
			t.Fatal(err)
		}
		all := []string{"ours1", "curator1", "kazoo1"}
		for range all {
			m.tell("set", all[0])
			m.wantDone("set", all[0])
			m.tell("set", all[1])
			m.wantDone("set", all[1])
			m.tell("wait", all...)
			m.tell("remove", "ours2")
			// A wait that begins after the removal returns at once.
			answers := map[string]bool{}
			for range len(all) + 1 {
				select {
				case answer := <-m.answers:
					answers[answer] = true
				case <-time.After(barrierPatience):
					t.Fatalf("got only %v", answers)
				}
			}
			for _, want := range []string{"ours1 wait", "curator1 wait", "kazoo1 wait", "ours2 remove"} {
				if !answers[want] {
					t.Errorf("got %v, want %q", answers, want)
				}
			}
			m.tell("set", "ours2")
			m.wantDone("set", "ours2")
			m.tell("wait", "ours1")
			m.tell("remove", all[0])
			for range 2 {
				select {
				case answer := <-m.answers:
					if answer != "ours1 wait" && answer != all[0]+" remove" {
						t.Errorf("got %q", answer)
					}
				case <-time.After(barrierPatience):
					t.Fatal("still waits")
				}
			}
			all = append(all[1:], all[0])
		}
	})
}
