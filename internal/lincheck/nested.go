package lincheck

// Nested holds.

import "fmt"

// Nested is a hold acquired inside another hold of the same lock.
type Nested struct {
	Token int64
	Alive int64 // when its context was last seen alive
}

// alive returns when a context of the hold, or of a hold nested in it, was last seen alive. To other clients they are
// one hold, which lasts until the last of them is released, in any order.
func (h Hold) alive() int64 {
	alive := max(h.Alive, h.Got)
	for _, n := range h.Nested {
		alive = max(alive, n.Alive)
	}
	return alive
}

// CheckNested checks that each hold acquired inside another has that hold's token.
func CheckNested(holds []Hold) error {
	for _, h := range holds {
		token := h.Token
		for _, c := range h.Changes { // nesting comes after the changes
			token = c.Token
		}
		for _, n := range h.Nested {
			if n.Token != token {
				return fmt.Errorf("lincheck: client %d got token %d inside its hold with token %d (%s)",
					h.Client, n.Token, token, h.Node)
			}
		}
	}
	return nil
}
