package interop_test

import "strings"

// A pair is one of our recipes and one of a peer's on the same path, and whether they exclude each other there.
type pair struct {
	ours  string // "mutex"
	peer  string // language and what of it: "java mutex"
	limit int    // how many permits there are; 0 for locks

	why     string   // why they do not exclude each other; empty if they do
	intrude []string // who of them comes in although the other one is inside: oursSide, peerSide
}

// The names of the two sides.
const (
	oursSide = "ours"
	peerSide = "theirs"
)

// Why two do not exclude each other.
const (
	ownPattern = "kazoo counts nodes that are named like its own, and no others"
	ownNames   = "Curator compares what follows its own marker; a name without it comes last, as if it had come later"
	ownSession = "its nodes are named by session, `x-SESSION-SEQ`: nobody else takes them for contenders"
)

// pairs is the table of docs/interop.md.
func pairs() []pair {
	return []pair{
		{ours: "mutex", peer: "java mutex"},
		{ours: "mutex", peer: "java selector"},
		{ours: "mutex", peer: "java writelock", why: ownSession, intrude: []string{oursSide}},
		{ours: "mutex", peer: "gozk lock"},
		{ours: "mutex", peer: "kazoo lock", why: ownPattern, intrude: []string{peerSide}},
		{ours: "mutex", peer: "kazoo lock+pattern"},
		{ours: "mutex", peer: "kazoo lock-as-mutex"},
		{ours: "mutex", peer: "kazoo election", why: ownPattern, intrude: []string{peerSide}},

		{ours: "elect-latch", peer: "java latch"},
		{ours: "elect-latch", peer: "kazoo election-as-latch"},
		{ours: "elect-selector", peer: "java selector"},
		{ours: "elect-selector", peer: "java mutex"},
		{ours: "elect-selector", peer: "kazoo election", why: ownPattern, intrude: []string{peerSide}},
		{ours: "elect-selector", peer: "kazoo election-as-selector"},
		{ours: "elect-kazoo", peer: "java selector", why: ownNames, intrude: []string{peerSide}},
		{ours: "elect-kazoo", peer: "kazoo election"},
		{ours: "elect-kazoo", peer: "kazoo lock"},
	}
}

// name is the pair's name as a test.
func (p pair) name() string { return strings.ReplaceAll(p.ours+"/"+p.peer, " ", "_") }

// exclusive reports whether the two exclude each other.
func (p pair) exclusive() bool { return p.why == "" }
