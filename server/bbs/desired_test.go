package bbs

import (
	"testing"

	"cupola/server/bbs/bbspb"
)

func TestDesiredComesBack(t *testing.T) {
	w := newWorld(t)
	w.desire(plain("p", 2))
	res := &bbspb.DesiredLRPResponse{}
	w.ask("/v1/desired_lrps/get_by_process_guid.r3", &bbspb.ProcessGUIDRequest{ProcessGuid: "p"}, res)
	if d := res.DesiredLrp; res.Error != nil || d.GetDomain() != "tests" || d.GetModificationTag().GetEpoch() == "" {
		t.Errorf("got %v", res)
	}
	actuals := &bbspb.ActualLRPsResponse{}
	w.ask("/v1/actual_lrps/list", &bbspb.ActualLRPsRequest{ProcessGuid: "p"}, actuals)
	if len(actuals.ActualLrps) != 2 || actuals.ActualLrps[0].State != "UNCLAIMED" {
		t.Errorf("got %v", actuals)
	}
}
