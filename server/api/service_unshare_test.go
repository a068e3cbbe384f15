package api

import (
	"testing"

	"cupola/store"
)

// TestUnsharingFromTheOwnersSpace asks to take an instance out of the space that
// it is in: the apps there stay bound.
func TestUnsharingFromTheOwnersSpace(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error { return offerOne(tx, "0") })
	w.run(t, []step{
		{method: "DELETE", path: "/v3/service_instances/in-0/relationships/shared_spaces/space-1", status: 204},
		{method: "GET", path: "/v3/service_credential_bindings/bi-0", status: 200, want: `{"last_operation": {"type": "create", "state": "succeeded"}}`},
		{method: "DELETE", path: "/v3/service_instances/in-0/relationships/shared_spaces/none", status: 422,
			want: detail(10008, "Unable to unshare service instance from space none. Ensure the space exists.")},
	})
}
