package bbs

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/bbsrows"
	"cupola/server/desire"
	"cupola/store"
)

// BenchmarkList lists 2,000, without the way to a client.
func BenchmarkList(b *testing.B) {
	s, err := store.Open(store.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	server := New(Config{Store: s, Rows: bbsrows.New(), Apps: func(*store.Tx) ([]desire.App, error) { return nil, nil },
		Cells: func() []lrp.Cell { return nil }, Wake: func() {}})
	for i := range 2000 {
		if _, err := server.desire(ctx, &bbspb.DesireLRPRequest{DesiredLrp: plain(fmt.Sprint("p-", i), 1)}); err != nil {
			b.Fatal(err)
		}
	}
	for what, list := range map[string]func() (proto.Message, error){
		"ActualLRPs":      func() (proto.Message, error) { return server.listActuals(ctx, &bbspb.ActualLRPsRequest{}) },
		"SchedulingInfos": func() (proto.Message, error) { return server.listSchedulingInfos(ctx, &bbspb.DesiredLRPsRequest{}) },
		"one": func() (proto.Message, error) {
			return server.getDesired(ctx, &bbspb.ProcessGUIDRequest{ProcessGuid: "p-1"})
		},
	} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m, err := list()
				if err == nil {
					_, err = proto.Marshal(m)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
