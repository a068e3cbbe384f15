package stack

import (
	"cupola/rootfs/debian"
	"cupola/runtime/contract"
)

// DebianExtras is what containers rely on besides Debian's packages: Cloud Foundry's user, paths and locale. As in its own stacks,
// an app can bring its own settings of OpenSSL.
func DebianExtras() debian.Extras {
	return debian.Extras{
		Users:   []debian.User{{Name: contract.VcapName, ID: contract.VcapID, Home: contract.Home[1:], Dirs: []string{contract.AppDir[1:]}}},
		Links:   map[string]string{"app": contract.AppDir},
		Locale:  "en_US.UTF-8",
		OpenSSL: []string{"/tmp/app/openssl.cnf", contract.AppDir + "/openssl.cnf"},
	}
}
