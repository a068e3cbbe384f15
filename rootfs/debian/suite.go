package debian

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A suite is one release of a distribution and what is trusted to sign it.
type suite struct {
	distro     string // "Debian" or "Ubuntu"
	codename   string
	components []string
	pockets    []pocket
	keys       []string // fingerprints of primary keys, upper-case hex
	keyring    string   // the package that carries those keys
}

// A pocket is a separately signed part of a suite.
type pocket struct {
	name     string // as in dists/<name>
	security bool
	needed   bool // without it a build fails
}

// Fingerprints of the archive keys. The key material comes from elsewhere (see
// keyring.go) and counts only if it has one of these.
const (
	debian12Automatic = "B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8"
	debian12Security  = "05AB90340C0C5E797F44A8C8254CF3B5AEC0A8F0"
	debian12Stable    = "4D64FEC119C2029067D6E791F8D2585B8783D481"
	debian13Automatic = "04B54C3CDCA79751B16BC6B5225629DF75B188BD"
	debian13Security  = "5E04A1E3223A19A20706E20F9904613D4CCE68C6"
	debian13Stable    = "41587F7DB8C774BCCF131416762F67A0B2C39DE4"
	ubuntu2018        = "F6ECB3762474EDA9D21B7022871920D1991BC93C"
)

func suites() map[string]suite {
	debian := []string{debian12Automatic, debian12Security, debian12Stable, debian13Automatic, debian13Security, debian13Stable}
	return map[string]suite{
		"debian12": debianSuite("bookworm", debian),
		"debian13": debianSuite("trixie", debian),
		"jammy":    ubuntuSuite("jammy"),
		"noble":    ubuntuSuite("noble"),
	}
}

// lookupSuite finds a suite by the name a user gives: "debian12" or its
// codename "bookworm".
func lookupSuite(name string) (suite, error) {
	aliases := map[string]string{
		"bookworm": "debian12", "trixie": "debian13", "ubuntu22.04": "jammy", "ubuntu24.04": "noble",
	}
	if full, ok := aliases[name]; ok {
		name = full
	}
	s, ok := suites()[name]
	if !ok {
		return suite{}, fmt.Errorf("suite %q is not known: choose one of %s", name, strings.Join(slices.Sorted(maps.Keys(suites())), ", "))
	}
	return s, nil
}

func debianSuite(codename string, keys []string) suite {
	return suite{
		distro:     "Debian",
		codename:   codename,
		components: []string{"main"},
		pockets: []pocket{
			{name: codename, needed: true},
			{name: codename + "-updates"},
			{name: codename + "-security", security: true},
		},
		keys:    keys,
		keyring: "debian-archive-keyring",
	}
}

func ubuntuSuite(codename string) suite {
	return suite{
		distro:     "Ubuntu",
		codename:   codename,
		components: []string{"main", "universe"},
		pockets: []pocket{
			{name: codename, needed: true},
			{name: codename + "-updates"},
			{name: codename + "-security", security: true},
		},
		keys:    []string{ubuntu2018},
		keyring: "ubuntu-keyring",
	}
}
