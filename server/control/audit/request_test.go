package audit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Events show the credentials of registries neither where Cloud Controller has
// them nor beside the data, where RFC-0046 has them.
func TestRequestHidesCredentialsOfALifecycle(t *testing.T) {
	secret := func() Data { return Data{"registry": Data{"password": "secret"}} }
	got := Request(Data{"name": "app", "lifecycle": Data{"type": "buildpack", "credentials": secret(),
		"data": Data{"credentials": secret(), "buildpacks": []any{"https://u:secret@example.com/a.zip"}}}})
	want := Data{"name": "app", "lifecycle": Data{"type": "buildpack", "credentials": Hidden,
		"data": Data{"credentials": Hidden, "buildpacks": []any{"https://***:***@example.com/a.zip"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
