package queue

import "slices"

// numbers returns the numbers that names stand for, in order. Foreign nodes are left out.
func numbers(names []string, parse func(string) (int, bool)) []int {
	var list []int
	for _, name := range names {
		if n, ok := parse(name); ok {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}
