// Package interop holds no code of its own. Its tests let other people's clients loose on the embedded server: the Java client,
// Curator and kazoo, with programs of ours and with the suite that kazoo brings along. Each program also runs against Apache
// ZooKeeper, which shows that the program is right.
package interop
