package both_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// Each field of each package's hooks calls both, in order, and costs nothing if neither has it.
func TestAndCallsTheHooksOfBoth(t *testing.T) {
	t.Parallel()
	check(t, lock.Hooks.And)
	check(t, elect.Hooks.And)
	check(t, queue.Hooks.And)
	check(t, zk.Hooks.And)
}

func check[H any](t *testing.T, and func(h, more H) H) {
	t.Helper()
	var none H
	for i := range reflect.TypeFor[H]().NumField() {
		field := reflect.TypeFor[H]().Field(i)
		name := fmt.Sprintf("%v.%s", reflect.TypeFor[H](), field.Name)
		var told string
		teller := func(who string) H {
			var h H
			reflect.ValueOf(&h).Elem().Field(i).Set(reflect.MakeFunc(field.Type, func([]reflect.Value) []reflect.Value {
				told += who
				return nil
			}))
			return h
		}
		args := make([]reflect.Value, field.Type.NumIn())
		for n := range args {
			args[n] = reflect.Zero(field.Type.In(n))
		}
		for want, joined := range map[string]H{
			"ab": and(teller("a"), teller("b")), "a": and(teller("a"), none), "b": and(none, teller("b")),
		} {
			told = ""
			reflect.ValueOf(joined).Field(i).Call(args)
			if told != want {
				t.Errorf("%s told %q, want %q", name, told, want)
			}
		}
		if !reflect.ValueOf(and(none, none)).Field(i).IsNil() {
			t.Errorf("%s is not nil", name)
		}
	}
}
