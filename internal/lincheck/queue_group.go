package lincheck

// Groups of items: one at a time, and in order.

import (
	"cmp"
	"slices"
)

// judgeGroups checks that of each group one item after the other was delivered.
func (j *queueJudge) judgeGroups() {
	groups := make(map[string][]*item)
	for _, it := range j.order {
		if it.from == nil || len(it.deliveries) == 0 {
			continue
		}
		for _, d := range it.deliveries {
			if d.Group != it.from.Group {
				j.report([]string{it.id}, "item %s was put in group %q and delivered in group %q", it.id, it.from.Group,
					d.Group)
			}
		}
		if it.from.Group != "" {
			groups[it.from.Group] = append(groups[it.from.Group], it)
		}
	}
	for group, list := range groups {
		slices.SortFunc(list, func(a, b *item) int { return cmp.Compare(a.deliveries[0].Token, b.deliveries[0].Token) })
		for i, late := range list {
			if i > 0 {
				j.judgeHeads(group, list[i-1], late)
			}
			for _, early := range list[:i] {
				if late.from.before(early.from) {
					j.report([]string{late.id, early.id},
						"item %s of group %q was delivered before item %s, which was put before it",
						early.id, group, late.id)
				}
			}
		}
	}
}

// judgeHeads checks that an item of a group was finished before the next one was delivered.
func (j *queueJudge) judgeHeads(group string, head, next *item) {
	first, last := next.deliveries[0], head.deliveries[len(head.deliveries)-1]
	switch f := last.Finish; {
	case last.Token > first.Token:
		j.report([]string{head.id, next.id},
			"item %s of group %q was delivered again, token %d, after the next one, item %s, token %d",
			head.id, group, last.Token, next.id, first.Token)
	case f.Done > 0 && last.ends(j.Rules) && f.Asked > first.Got:
		j.report([]string{head.id, next.id},
			"item %s of group %q was delivered to client %d at %d, before client %d finished item %s at %d",
			next.id, group, first.Client, first.Got, last.Client, head.id, f.Asked)
	case first.Alive > 0 && first.Got < last.Alive:
		j.report([]string{head.id, next.id},
			"two items of group %q had consumers at once: item %s client %d until at least %d,"+
				" item %s client %d from %d on",
			group, head.id, last.Client, last.Alive, next.id, first.Client, first.Got)
	}
}

// before reports whether an item certainly was in the queue before the other.
func (x *putItem) before(other *putItem) bool {
	if x.Put == other.Put {
		return x.index < other.index
	}
	return x.id != "" && x.Put.Done < other.Put.Asked
}
