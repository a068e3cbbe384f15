package doctor

import (
	"errors"
	"strings"
	"testing"
)

func TestJudgeContainers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcomes map[string]error
		err      error
		level    Level
		detail   string
		fix      string
	}{
		"all start": {map[string]error{"minifs": nil, "host": nil}, nil, OK, "host, minifs", ""},
		"old kernel": {map[string]error{"minifs": nil, "host": errors.New(`error mounting "/usr" to rootfs at "/usr": invalid argument`)}, nil,
			Fail, "stack host does not start", "sudo umount /usr/local"},
		"read-only /proc/sys": {map[string]error{"minifs": errors.New("open /proc/sys/net/x: read-only file system")}, nil, Fail, "stack minifs", "remount,rw /proc/sys"},
		"other":               {nil, errors.New("so"), Fail, "containers do not start: so", "serve --debug"},
	} {
		got := judgeContainers(c.outcomes, c.err, []string{"/usr/local"})
		if got.Level != c.level || !strings.Contains(got.Detail, c.detail) || !strings.Contains(got.Fix, c.fix) || (got.Fix == "") != (c.fix == "") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	m := &machine{}
	if got := m.containers(t.Context()); got.Level != Warn || !strings.Contains(got.Detail, "not checked") {
		t.Errorf("without root: got %+v", got)
	}
}
