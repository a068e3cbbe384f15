package debian

import (
	"os/exec"
	"testing"
)

func TestCompareVersions(t *testing.T) {
	// Each version is less than the next.
	order := []string{
		"0~~", "0~~a", "0~", "", "0.1", "1~rc1", "1", "1-0ubuntu1", "1-1~bpo12+1", "1-1", "1-1+b1", "1-1.1", "1-2", "1-10", "1a", "1a-1", "1+dfsg", "1.0", "1.0.1",
		"1.2", "1.9", "1.10", "2.36-9+deb12u7", "2.36-9+deb12u14", "09.5", "10", "20250419~deb12u2", "20250419", "1:0.1", "1:1.2-3~", "1:1.2-3", "10:0",
	}
	for i, a := range order {
		for j, b := range order {
			got := compareVersions(a, b)
			if i < j && got >= 0 || i > j && got <= 0 || i == j && got != 0 {
				t.Errorf("compare %q with %q: got %d", a, b, got)
			}
		}
	}
	for _, same := range [][2]string{{"1.0", "1.00"}, {"0:1", "1"}, {"1-0", "1"}, {"1.", "1.0"}, {"", "0"}, {"01", "1"}} {
		if got := compareVersions(same[0], same[1]); got != 0 {
			t.Errorf("compare %q with %q: got %d; want 0", same[0], same[1], got)
		}
	}
}

func FuzzCompareVersions(f *testing.F) {
	for _, v := range []string{"1:1.2-3", "1~rc1", "1.0.0+dfsg-1~bpo12+1", "", "a-b-c:d", "2:~"} {
		f.Add(v, "1.2-3", "0~")
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		ab, ba, bc, ac := compareVersions(a, b), compareVersions(b, a), compareVersions(b, c), compareVersions(a, c)
		if (ab < 0) != (ba > 0) || (ab == 0) != (ba == 0) {
			t.Errorf("%q and %q: got %d one way and %d the other", a, b, ab, ba)
		}
		if ab <= 0 && bc <= 0 && ac > 0 {
			t.Errorf("%q <= %q <= %q, but %q is more than %q", a, b, c, a, c)
		}
		if compareVersions(a, a) != 0 {
			t.Errorf("%q is not equal to itself", a)
		}
	})
}

// TestCompareVersionsWithDpkg asks the real thing where there is one.
func TestCompareVersionsWithDpkg(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		t.Skip("needs dpkg")
	}
	versions := []string{"0", "1.0-1", "1.0~rc1-1", "1.0+git1-1", "1:0.9", "1.0-1+b1", "1.00-01", "2a", "2.a", "2+a", "2~a"}
	for _, a := range versions {
		for _, b := range versions {
			got := compareVersions(a, b) < 0
			if want := exec.Command(dpkg, "--compare-versions", a, "lt", b).Run() == nil; got != want {
				t.Errorf("%s less than %s: got %v; want %v", a, b, got, want)
			}
		}
	}
}
