package api

import (
	"slices"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

func viewFeatureFlag(c *call, f *cf.FeatureFlag) doc {
	return doc{"name": f.Name, "enabled": f.Enabled, "updated_at": stampOrNil(f.UpdatedAt), "custom_error_message": control.OrNil(f.CustomErrorMessage),
		"links": doc{"self": c.link("/v3/feature_flags/%s", f.Name)}}
}

func listFeatureFlags(c *call) (*response, error) {
	q, err := parseQuery(c, flagRows{})
	if err != nil {
		return nil, err
	}
	var found []*cf.FeatureFlag
	for _, f := range control.FeatureFlags {
		now, err := c.Flag(f.Name)
		if err != nil {
			return nil, err
		}
		found = append(found, now)
	}
	if q.Desc {
		slices.Reverse(found)
	}
	return ok(page(c, q, window(found, q), len(found), viewFeatureFlag))
}

// flagRows is what parseQuery needs to know of the flags.
type flagRows struct{ noRows }

func (flagRows) Orders() []string { return []string{"name"} }

// window is a page of rows that are all there already.
func window[T any](rows []*T, q listQuery) []*T {
	from := min((q.Page-1)*q.PerPage, len(rows))
	return rows[from:min(from+q.PerPage, len(rows))]
}

type flagRequest struct {
	Enabled            change.Field[bool]   `json:"enabled"`
	CustomErrorMessage change.Field[string] `json:"custom_error_message"`
}

func (r flagRequest) Validate() []string {
	m := r.CustomErrorMessage
	return control.Must(!r.Enabled.Null, "Enabled must be a boolean",
		!m.Set || m.Null || m.V != "", "Custom error message is too short (minimum is 1 character)",
		len(m.V) <= 250, "Custom error message is too long (maximum is 250 characters)")
}

func findFlag(c *call) (*cf.FeatureFlag, error) { return c.Flag(c.param("name")) }

// findOwnFlag is findFlag for one who may change it.
func findOwnFlag(c *call) (*cf.FeatureFlag, error) {
	f, err := findFlag(c)
	if err == nil {
		err = c.PermitAdmin()
	}
	return f, err
}

func setFlag(c *control.Session, f *cf.FeatureFlag, req flagRequest) error {
	f.Enabled = req.Enabled.Or(f.Enabled)
	if req.CustomErrorMessage.Set {
		f.CustomErrorMessage = req.CustomErrorMessage.V
	}
	f.UpdatedAt = c.Tx.Now
	return store.FeatureFlags.Put(c.Tx, f)
}
