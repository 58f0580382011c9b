package lincheck

// The model of a shared value.

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// ValueCall is one change of a shared value as its caller saw it. No two calls set the same data. Times are as in Hold.
type ValueCall struct {
	Client int
	If     bool   `json:",omitempty"` // only if the value is Old
	Old    string `json:",omitempty"` // empty for a node that is missing
	Data   string `json:",omitempty"` // that is set; empty if the node is deleted, or the value only read
	Read   bool   `json:",omitempty"` // the value is Old, and is not changed
	Asked  int64  // before the call
	Done   int64  `json:",omitempty"` // after it; 0 if the outcome is unknown: it may have been done at any time since
	Vain   bool   `json:",omitempty"` // nothing was done
}

var valueModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		v, c := state.(string), input.(ValueCall)
		switch {
		case c.Read:
			return v == c.Old, v
		case !c.If || v == c.Old:
			return true, c.Data
		default: // it was not done, which a call of unknown outcome may not have been
			return c.Done == 0, v
		}
	},
	DescribeOperation: func(input, _ any) string {
		c := input.(ValueCall)
		switch {
		case c.Read:
			return fmt.Sprintf("get: %q", c.Old)
		case c.If:
			return fmt.Sprintf("set %q if %q", c.Data, c.Old)
		default:
			return fmt.Sprintf("set %q", c.Data)
		}
	},
	DescribeState: func(state any) string { return fmt.Sprintf("%q", state) },
}

// CheckValue checks that the calls can be those of one value whose node is missing at first, as CheckCounter does.
func CheckValue(calls []ValueCall, dir string) error {
	reads := func(input any) bool { return input.(ValueCall).Read }
	calls = slices.DeleteFunc(calls, func(c ValueCall) bool { return c.Vain })
	return judgeCalls(valueModel, reads, "a value", calls,
		func(c ValueCall) porcupine.Operation {
			return porcupine.Operation{ClientId: c.Client, Input: c, Call: c.Asked, Return: c.Done}
		}, dir)
}
