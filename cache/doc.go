// Package cache keeps copies of ZooKeeper nodes in memory and follows their changes: of one node, of a node's children,
// or of a whole tree. Reads are local and consistent, and changes are values to iterate over.
//
//	tree, err := cache.OpenTree(client, "/app/config", cache.Config{})
//	...
//	defer tree.Close()
//	if err := tree.WaitSynced(ctx); err != nil {
//		return err
//	}
//	limit, ok := tree.Get("/app/config/limit")
//	for change, err := range tree.Changes(ctx) {
//		...
//	}
//
// A cache publishes its contents in versions. A View is one version: it never changes, costs nothing to take, and may
// be read for as long as it is needed. After a lost connection and under a new session the cache reads everything
// again and compares the transactions that created and last changed each node. So it sees every difference, and a node
// that was deleted and created again as such.
//
// Caches need ZooKeeper 3.6 for a single watch on the whole tree. On older servers they set two watches on each node.
package cache
