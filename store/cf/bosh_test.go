package cf

import (
	"encoding/json"
	"testing"
)

// TestBOSHLink also reads what was written before links had names.
func TestBOSHLink(t *testing.T) {
	for text, want := range map[string]BOSHLink{
		`"nats"`: {Deployment: "nats"},
		`{"Deployment":"nats","Name":"bus","Type":"nats"}`: {Deployment: "nats", Name: "bus", Type: "nats"},
	} {
		var got BOSHLink
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	if err := json.Unmarshal([]byte("5"), &BOSHLink{}); err == nil {
		t.Error("5 was read")
	}
}
