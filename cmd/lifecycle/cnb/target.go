package cnb

import (
	"bufio"
	"cmp"
	"os"
	"runtime"
	"slices"
	"strings"
)

// target is a machine that a buildpack says it runs on. What it leaves out is any.
type target struct {
	OS      string   `json:"os"`
	Arch    string   `json:"arch"`
	Variant string   `json:"variant"`
	Distros []distro `json:"distros"`
}

type distro struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// osRelease says which distribution a root file system is.
const osRelease = "/etc/os-release"

// thisTarget is the stack that the container runs on.
func thisTarget() target {
	t := target{OS: "linux", Arch: runtime.GOARCH}
	f, err := os.Open(osRelease)
	if err != nil {
		return t
	}
	defer f.Close()
	var d distro
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		switch name {
		case "ID":
			d.Name = value
		case "VERSION_ID":
			d.Version = value
		}
	}
	if d != (distro{}) {
		t.Distros = []distro{d}
	}
	return t
}

func (t target) String() string {
	s := cmp.Or(t.OS, "any") + "/" + cmp.Or(t.Arch, "any")
	for _, d := range t.Distros {
		s += strings.TrimRight(" "+d.Name+" "+d.Version, " ")
	}
	return s
}

// runsOn reports whether one of a buildpack's targets is this one (lifecycle:
// platform.TargetSatisfiedForBuild). A buildpack without targets runs anywhere.
func (d *descriptor) runsOn(t target) bool {
	return len(d.Targets) == 0 || slices.ContainsFunc(d.Targets, func(want target) bool {
		return fits(want.OS, t.OS) && fits(want.Arch, t.Arch) && fits(want.Variant, t.Variant) && (len(want.Distros) == 0 || slices.ContainsFunc(want.Distros, func(d distro) bool {
			return len(t.Distros) > 0 && fits(d.Name, t.Distros[0].Name) && fits(d.Version, t.Distros[0].Version)
		}))
	})
}

func fits(want, have string) bool { return want == "" || have == "" || want == have }

// env is what buildpacks learn of the target.
func (t target) env() []string {
	env := []string{"CNB_TARGET_OS=" + t.OS, "CNB_TARGET_ARCH=" + t.Arch}
	for _, d := range t.Distros {
		if d.Name != "" {
			env = append(env, "CNB_TARGET_DISTRO_NAME="+d.Name)
		}
		if d.Version != "" {
			env = append(env, "CNB_TARGET_DISTRO_VERSION="+d.Version)
		}
	}
	return env
}
