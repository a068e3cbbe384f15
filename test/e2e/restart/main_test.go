package restart

import (
	"flag"
	"strconv"
	"testing"

	"cupola/test/e2e"
)

// waiting is how many of the tests do little but wait, for minutes: for jobs and the autoscaler.
const waiting = 3

// TestMain lets as many tests run beside those that wait as -parallel has it.
func TestMain(m *testing.M) {
	flag.Parse()
	if n := flag.Lookup("test.parallel").Value.(flag.Getter).Get().(int); n > 1 {
		_ = flag.Set("test.parallel", strconv.Itoa(n+waiting)) // is a number
	}
	e2e.Main(m)
}
