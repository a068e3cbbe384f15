//go:build linux

package boot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := []struct {
		args []string
		want options
		err  string
	}{
		{args: []string{"--", "app"}, want: options{argv: []string{"app"}}},
		{args: []string{"app", "--seccomp", "x"}, want: options{argv: []string{"app", "--seccomp", "x"}}},
		{args: []string{"--seccomp", "f", "--cgroup-fds=3,4", "--", "--odd", "a"}, want: options{seccomp: "f", cgroupFDs: []int{3, 4}, argv: []string{"--odd", "a"}}},
		{args: nil, err: "no command to execute"},
		{args: []string{"--"}, err: "no command to execute"},
		{args: []string{"--", ""}, err: "no command to execute"},
		{args: []string{"--seccomp"}, err: "flag --seccomp needs a value"},
		{args: []string{"--cgroup-fds", "2", "--", "a"}, err: `flag --cgroup-fds: "2" is not an inherited descriptor`},
		{args: []string{"--cgroup-fds", "x", "--", "a"}, err: `flag --cgroup-fds: "x" is not an inherited descriptor`},
		{args: []string{"--other", "1", "a"}, err: "unknown flag --other"},
	}
	for _, test := range tests {
		got, err := parse(test.args)
		if err != nil || test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("parse(%q): got error %v; want %q", test.args, err, test.err)
			}
			continue
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(options{})); diff != "" {
			t.Errorf("parse(%q) (-want +got):\n%s", test.args, diff)
		}
	}
}
