// Package attempt is how recipes act on a session: it asks again what a server refuses for now, continues under the
// next session, finds out what became of a write whose reply is lost, makes parents, removes nodes and checks what
// callers pass in. No recipe decides any of that by itself.
//
// # What follows from what
//
//	                    a read, or a write   a creation under a   a transaction with   the removal of
//	what happened       that may be done     name of its own      a receipt            an own node
//	                    twice (Ask, Run)     (Creation)           (Receipts)           (Remove)
//	------------------  -------------------  -------------------  -------------------  -------------------
//	not sent            ask again            ask again            ask again            ask again
//	refused for now     pause, ask again     resolve an earlier   as before            pause, ask again
//	(zk.Temporary)                           try first, then
//	                                         pause, ask again
//	refused for good    return it            resolve an earlier   as before            NoNode: done. NoAuth,
//	                                         try first, then                           NotEmpty: return it.
//	                                         return it                                 Else pause, ask again
//	connection lost     ask again            look for the name    by the receipt's     ask again
//	                                         behind a fence, and  version; then ask
//	                                         once more later      again if not done
//	session ended       next session         ephemeral: gone      persistent receipt:  done
//	                                                              under the next one;
//	                                                              else ErrUnresolved
//	the caller left     return the cause     remove what was      the outcome, or      continue in the
//	                                         made or will be      ErrUnresolved        background
//
// That a node is absent never means that its creation was not done: another client may have removed it since, or the
// creation may still be done, after a session that ended locally until the leader expires it. Only a name that no other
// client chooses, looked for behind a Fence within the session, or a version that only this client moves, tells.
//
// # How a recipe uses it
//
//   - Its constructor calls Args. Data of the caller's is checked against MaxData.
//   - A read, and a write that may be done twice, is a function that Run calls; within one session, that Ask calls. In
//     a loop of its own the recipe passes each failure to Again. It never looks at codes that pass, nor at
//     zk.ErrConnectionLost, by itself.
//   - A write that must not be done twice goes through Receipts, or creates a node through a Creation.
//   - What is watched is followed by Follow.
//   - Parents are made by Dirs; many requests at a time are sent by Each; nodes of its own are deleted by Remove.
//   - What must see all earlier requests of the session comes behind a Fence, never behind a sync.
//   - Nodes that it needs beside or below those of its layout have names made by Mark or Beside, which Args keeps from
//     users' paths.
//   - The error that a caller gets passes Explain.
package attempt
