package pattern

import "testing"

func TestLazy(t *testing.T) {
	digits := Lazy(`^[0-9]{1,200}$`)
	first := digits()
	if !first.MatchString("17") || first.MatchString("x") {
		t.Error("it is another expression")
	}
	if digits() != first {
		t.Error("it was compiled again")
	}
	wrong := Lazy(`(`)
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("compiled what is no expression")
				}
			}()
			wrong()
		}()
	}
}
