package overlay

import "testing"

func TestMountPoint(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw": "/mnt2",
		`36 35 98:0 / /a\040b\011c\134d rw - ext3 /dev/root rw`:          "/a b\tc\\d",
		`36 35 98:0 / /odd\9 rw - ext3 /dev/root rw`:                     `/odd\9`,
		"36 35 98:0": "",
	} {
		if got, ok := mountPoint(line); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t; want %q", line, got, ok, want)
		}
	}
}

func FuzzMountPoint(f *testing.F) {
	f.Add(`36 35 98:0 / /a\040b rw - ext3 /dev/root rw`)
	f.Fuzz(func(t *testing.T, line string) {
		if got, ok := mountPoint(line); len(got) > len(line) || !ok && got != "" {
			t.Errorf("got %q, %t from %q", got, ok, line)
		}
	})
}
