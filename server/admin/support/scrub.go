package support

import "cupola/runtime/pattern"

// What texts of the daemon and of doctor could hold of credentials. They are redacted
// where they are written; this is a second look.
var (
	userinfo = pattern.Lazy(`(://)[^\s/@"'\\]+@`)
	query    = pattern.Lazy(`(://[^\s?"'\\]*\?)[^\s"'\\]+`)
	webhook  = pattern.Lazy(`(https?://[^\s/"'\\]+/)[^\s"'\\]+`) // the paths of Slack's and Discord's are secret
	bearer   = pattern.Lazy(`(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}`)
	named    = pattern.Lazy(`(?i)((?:password|passwd|secret|token|credentials?|api[_-]?key|private[_-]?key)["'\\]*\s*[:=]\s*["'\\]*)[^\s"'\\,;}]+`)
	pem      = pattern.Lazy(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|$)`)
)

// scrub replaces what could be credentials in a text.
func scrub(text []byte) []byte {
	text = pem().ReplaceAll(text, []byte("***"))
	text = userinfo().ReplaceAll(text, []byte("${1}***@"))
	text = query().ReplaceAll(text, []byte("${1}***"))
	text = webhook().ReplaceAll(text, []byte("${1}***"))
	text = bearer().ReplaceAll(text, []byte("${1} ***"))
	return named().ReplaceAll(text, []byte("${1}***"))
}
