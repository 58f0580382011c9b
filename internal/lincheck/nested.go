package lincheck

import "fmt"

// Nested is a hold that was acquired inside another of the same lock.
type Nested struct {
	Token int64
	Alive int64 // when its context was last seen alive
}

// alive returns when a context of the hold, or of one nested in it, was last seen alive: for everybody else they are one hold, which lasts until
// the last of them is given up, in whatever order.
func (h Hold) alive() int64 {
	alive := max(h.Alive, h.Got)
	for _, n := range h.Nested {
		alive = max(alive, n.Alive)
	}
	return alive
}

// CheckNested judges whether what was acquired inside holds was nested in them: it has the token that the hold had then.
func CheckNested(holds []Hold) error {
	for _, h := range holds {
		token := h.Token
		for _, c := range h.Changes { // nesting comes after these
			token = c.Token
		}
		for _, n := range h.Nested {
			if n.Token != token {
				return fmt.Errorf("lincheck: client %d got a hold with token %d inside its hold with token %d (%s)", h.Client, n.Token, token, h.Node)
			}
		}
	}
	return nil
}
