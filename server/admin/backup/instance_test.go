package backup

import (
	"strings"
	"testing"
)

func TestInstanceNames(t *testing.T) {
	all := []named{{Instance{Org: "o", Space: "dev", volume: "1"}, "db"}, {Instance{Org: "o", Space: "prod", volume: "2"}, "db"}, {Instance{Org: "p", Space: "dev", volume: "3"}, "queue"}}
	for _, c := range []struct {
		name        InstanceName
		all         []named
		volume, err string
	}{
		{InstanceName{Name: "queue"}, all, "3", ""},
		{InstanceName{Name: "db", Space: "prod"}, all, "2", ""},
		{InstanceName{Name: "db"}, all, "", "2 service instances named db: give --org and --space"},
		{InstanceName{Name: "db", Org: "p"}, all, "", "no service instance db of the built-in broker; it has: db in the space dev of the org o; db in the space prod of the org o; queue in"},
		{InstanceName{Name: "db"}, nil, "", "has no service instances"},
	} {
		got, err := c.name.of(c.all)
		if got.volume != c.volume || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: got %+v, %v; want %q, %q", c.name, got, err, c.volume, c.err)
		}
	}
}
