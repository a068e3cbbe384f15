package debian

import "strings"

// finishPAM follows libpam-runtime, whose pam-auth-update makes the files that those of su, login and sudo include, from templates and
// profiles of modules. Without them su aborts, even for root. Here there is one profile: that of Unix accounts.
func finishPAM(t *tree) error {
	profile := strings.NewReplacer(
		"$auth_primary", "auth\t[success=1 default=ignore]\tpam_unix.so nullok", "$auth_additional\n", "",
		"$account_primary", "account\t[success=1 new_authtok_reqd=done default=ignore]\tpam_unix.so", "$account_additional\n", "",
		"$password_primary", "password\t[success=1 default=ignore]\tpam_unix.so obscure yescrypt", "$password_additional\n", "",
		"$session_primary", sessionPrimary, "$session_additional", sessionAdditional,
		"$session_nonint_primary", sessionPrimary, "$session_nonint_additional", sessionAdditional,
	)
	for _, name := range []string{"auth", "account", "password", "session", "session-noninteractive"} {
		from, to := "usr/share/pam/common-"+name, "etc/pam.d/common-"+name
		if t.lookup(from) == nil || t.lookup(to) != nil {
			continue
		}
		template, err := t.read(from)
		if err != nil {
			return err
		}
		if err := t.put(to, 0o644, []byte(profile.Replace(string(template)))); err != nil {
			return err
		}
	}
	return nil
}

// Sessions of Unix accounts are only noted.
const (
	sessionPrimary    = "session\t[default=1]\t\t\tpam_permit.so"
	sessionAdditional = "session\trequired\tpam_unix.so"
)
