// Package everycall tests that every public call of every recipe acts on its session as package attempt says.
package everycall
