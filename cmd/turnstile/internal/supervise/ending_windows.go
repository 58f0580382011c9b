package supervise

// Ending.

import "os"

// Exit ends this process with the exit code.
func (e Ending) Exit() { os.Exit(e.Code) }
