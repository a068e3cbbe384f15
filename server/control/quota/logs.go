package quota

import (
	"fmt"
	"strings"

	"cupola/store"
	"cupola/store/cf"
)

// UnlimitedLogs counts the processes in orgs or spaces, as the filter says,
// that may log without limit.
func UnlimitedLogs(tx *store.Tx, filter string, guids ...string) (n int, err error) {
	processes, err := store.Processes.By(tx, filter, guids...)
	for _, p := range processes {
		if p.LogRateLimit < 0 {
			n++
		}
	}
	return n, err
}

// UnboundedIn says which orgs or spaces a quota cannot bound the logs of; nil
// when there are none.
func UnboundedIn(what string, names []string) error {
	const named = 2
	if len(names) == 0 {
		return nil
	}
	where := fmt.Sprintf("%ss '%s' which contain", what, strings.Join(names, "', '"))
	switch {
	case len(names) == 1:
		where = fmt.Sprintf("%s '%s' which contains", what, names[0])
	case len(names) > named:
		where = fmt.Sprintf("%ss '%s' and %d other %ss which contain", what, strings.Join(names[:named], "', '"), len(names)-named, what)
	}
	return cf.Unprocessable("Current usage exceeds new quota values. This quota is applied to %s apps running with an unlimited log rate limit.", where)
}
