package otel

// Open returns how many spans have begun and not ended.
func (t *Tracing) Open() (n int) {
	count := func(any, any) bool {
		n++
		return true
	}
	for _, s := range []*spans{&t.acquiring, &t.holding, &t.campaigning, &t.leading} {
		s.open.Range(count)
	}
	t.sending.Range(count)
	t.processing.Range(count)
	return n
}
