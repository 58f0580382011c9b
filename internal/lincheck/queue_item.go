package lincheck

// The life of one item.

// judgeItem checks the life of one item.
func (j *queueJudge) judgeItem(it *item) {
	for i, d := range it.deliveries {
		if it.from != nil && d.Priority != it.from.Priority {
			j.report([]string{it.id}, "item %s was put with priority %d and delivered with %d", it.id, it.from.Priority,
				d.Priority)
		}
		if limit := j.Rules.MaxAttempts; limit > 0 && d.Attempt > limit {
			j.report([]string{it.id}, "item %s was delivered in attempt %d of %d", it.id, d.Attempt, limit)
		}
		if i > 0 {
			j.judgeNext(it, it.deliveries[i-1], d)
		}
		if d.Finish.Done > 0 && d.ends(j.Rules) {
			j.judgeEnded(it, i)
		}
	}
	j.judgeEnd(it)
}

// judgeNext checks a delivery against the one before it.
func (j *queueJudge) judgeNext(it *item, a, b *Delivery) {
	switch {
	case a.Token == b.Token:
		j.report([]string{it.id}, "item %s was delivered twice under one claim, to clients %d and %d, token %d", it.id,
			a.Client, b.Client, a.Token)
	case b.Attempt <= a.Attempt && !j.revived(a, b):
		j.report([]string{it.id}, "item %s: attempt %d (client %d) after attempt %d (client %d)", it.id, b.Attempt,
			b.Client, a.Attempt, a.Client)
	}
	if b.Alive > 0 && b.Got < a.Alive { // a delivery that was never seen alive overlaps with none
		j.report([]string{it.id},
			"item %s had two consumers at once: client %d until at least %d, client %d from %d on",
			it.id, a.Client, a.Alive, b.Client, b.Got)
	}
}

// judgeEnded checks what came after delivery i, whose consumer was told that the item is finished.
func (j *queueJudge) judgeEnded(it *item, i int) {
	d := it.deliveries[i]
	for k, other := range it.deliveries {
		if k > i && d.Finish.Fate != Acknowledged && j.mayBeBack(it.id, d.Finish.Asked, other.Got) {
			continue
		}
		if k > i || k != i && other.Asked > d.Finish.Done {
			j.report([]string{it.id},
				"item %s was delivered to client %d, token %d, after client %d, token %d, was told that it is %s",
				it.id, other.Client, other.Token, d.Client, d.Token, d.Finish.Fate)
		}
	}
}

// judgeEnd checks that the item is where it should be at the end.
func (j *queueJudge) judgeEnd(it *item) {
	j.judgeMark(it)
	if len(it.dead) > 0 {
		j.judgeDead(it)
		return
	}
	n := len(it.deliveries)
	purged := j.mayBePurged(it.free())
	switch {
	case purged && n == 0:
		return
	case purged && it.deliveries[n-1].Finish.Done == 0, purged && !it.deliveries[n-1].ends(j.Rules):
		return
	case n == 0:
		j.report([]string{it.id}, "item %s, %q, was acknowledged as put, and is lost", it.id, it.body())
		return
	}
	switch last := it.deliveries[n-1]; {
	case last.Finish.Asked == 0:
		j.report([]string{it.id}, "item %s was delivered to client %d last, which did nothing with it, and is lost",
			it.id, last.Client)
	case last.Finish.Fate == Acknowledged && (last.Finish.Done > 0 || !last.Finish.Marked || j.marks[it.id]):
		// It is done, or may be: its consumer got no reply.
	case last.Finish.Fate == Acknowledged:
		j.report([]string{it.id}, "item %s was not acknowledged by client %d, which left no mark, and is lost", it.id,
			last.Client)
	default:
		j.report([]string{it.id}, "item %s was %s by client %d, and is lost", it.id, last.Finish.Fate, last.Client)
	}
}

// judgeMark checks that the mark of an acknowledgement is there if, and only if, the acknowledgement was done.
func (j *queueJudge) judgeMark(it *item) {
	var last Finish
	var after *Delivery // the last delivery after it
	for _, d := range it.deliveries {
		if after = d; d.Finish.Marked && d.Finish.Asked > 0 {
			last, after = d.Finish, nil
		}
	}
	switch {
	case last.Done > 0 && !j.marks[it.id]:
		j.report([]string{it.id}, "item %s was acknowledged, but the write in the same transaction was not done", it.id)
	case !j.marks[it.id]:
	case !last.Marked:
		j.report([]string{it.id}, "item %s has a mark that no acknowledgement left", it.id)
	case after != nil:
		j.report([]string{it.id},
			"item %s was delivered to client %d, token %d, after its acknowledgement had left its mark",
			it.id, after.Client, after.Token)
	case len(it.dead) > 0:
		j.report([]string{it.id}, "item %s is a dead letter, and its acknowledgement has left its mark", it.id)
	}
}

// judgeDead checks a dead letter.
func (j *queueJudge) judgeDead(it *item) {
	dead := it.dead[0]
	if len(it.dead) > 1 {
		j.report([]string{it.id}, "item %s is %d dead letters", it.id, len(it.dead))
	}
	rejected := false
	for _, d := range it.deliveries {
		if d.Finish.Done > 0 && d.Finish.Fate == Acknowledged {
			j.report([]string{it.id}, "item %s was acknowledged by client %d, and is a dead letter", it.id, d.Client)
		}
	}
	if n := len(it.deliveries); n > 0 {
		last := it.deliveries[n-1]
		rejected = last.Finish.Fate == Rejected && last.Finish.Asked > 0 && last.Finish.Reason == dead.Reason
		if dead.Attempts < last.Attempt {
			j.report([]string{it.id}, "item %s is dead after %d attempts, and was delivered in attempt %d", it.id,
				dead.Attempts, last.Attempt)
		}
	}
	if !rejected && !j.spent(dead) {
		j.report([]string{it.id}, "item %s is dead after %d attempts of %d, because of %q, which no consumer gave",
			it.id, dead.Attempts, j.Rules.MaxAttempts, dead.Reason)
	}
}

// judgeSpare checks how many attempts count without a delivery.
func (j *queueJudge) judgeSpare() {
	spare := 0
	var items []string
	for _, it := range j.order {
		more := 0
		lives := j.lives(it)
		for i, life := range lives {
			counted := 0
			for _, d := range life {
				counted = max(counted, d.Attempt)
			}
			switch {
			case i == len(lives)-1:
				for _, x := range it.dead {
					counted = max(counted, x.Attempts)
				}
			case life[len(life)-1].Finish.Fate != Rejected: // it had no attempt left
				counted = max(counted, j.Rules.MaxAttempts)
			}
			more += max(0, counted-len(life))
		}
		if more > 0 {
			spare += more
			items = append(items, it.id)
		}
	}
	if spare > j.Rules.Spare {
		j.report(items, "%d attempts count without a delivery, want at most %d", spare, j.Rules.Spare)
	}
}
