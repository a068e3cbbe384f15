package metrics

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestAppCounts counts from several goroutines, and holds that apps without number do
// not fill the memory.
func TestAppCounts(t *testing.T) {
	var c appCounts
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 300 {
				c.add(fmt.Sprint("app-", n%3), time.Second)
			}
		})
	}
	wg.Wait()
	all := c.all()
	if len(all) != 3 || all["app-0"]+all["app-1"]+all["app-2"] != 1200 {
		t.Errorf("got %v; want 1200 requests to three apps", all)
	}
	if n, took := c.of("app-1"); n != 400 || took != 400*time.Second {
		t.Errorf("got %d requests in %v; want 400 of a second each", n, took)
	}
	if n, took := c.of("other"); n != 0 || took != 0 {
		t.Errorf("got %d requests in %v of an app that got none", n, took)
	}
	for n := range 2 * maxApps {
		c.add(fmt.Sprint("deleted-", n), 0)
	}
	if n := len(c.all()); n > maxApps {
		t.Errorf("%d apps are counted; want at most %d", n, maxApps)
	}
}
