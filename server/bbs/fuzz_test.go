package bbs

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
)

// FuzzDesire feeds the decoder, the validation and what follows on it. What is
// valid can be run, is the same after a round trip, and stays valid in the
// form that older clients get.
func FuzzDesire(f *testing.F) {
	for _, d := range []*bbspb.DesiredLRP{plain("p", 1), {}, {ProcessGuid: "\xff"}} {
		body, err := proto.Marshal(&bbspb.DesireLRPRequest{DesiredLrp: d})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &bbspb.DesireLRPRequest{}
		if unmarshal(body, r) != nil || model.ValidateDesired(r.DesiredLrp) != nil {
			return
		}
		d := r.DesiredLrp
		model.Desired(d)
		model.Routes(d)
		model.SchedulingInfo(d)
		model.DownTo2(d)
		text, err := proto.Marshal(d)
		again := &bbspb.DesiredLRP{}
		if err != nil || proto.Unmarshal(text, again) != nil || !proto.Equal(d, again) {
			t.Fatalf("got %v, %v; want %v", again, err, d)
		}
	})
}

// FuzzTask is the same for tasks.
func FuzzTask(f *testing.F) {
	body, err := proto.Marshal(&bbspb.DesireTaskRequest{TaskGuid: "t", Domain: "d", Definition: &bbspb.TaskDefinition{RootFs: "a:b", Action: plain("p", 1).Action}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Fuzz(func(_ *testing.T, body []byte) {
		r := &bbspb.DesireTaskRequest{}
		if unmarshal(body, r) == nil && model.ValidateTask(r) == nil {
			model.Task(r.Definition)
		}
	})
}
