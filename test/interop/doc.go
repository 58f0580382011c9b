// Package interop has no code of its own. Its tests run other projects' clients against the embedded server: the Java
// client, Curator and kazoo, with programs of ours and with kazoo's own test suite. Each program also runs against
// Apache ZooKeeper, which shows that the program is right.
package interop
