// Package house holds tests of the repository itself: who may import whom.
package house
