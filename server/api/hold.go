package api

import "time"

// hold answers with what look gives. The CLI asks every 3 s while it waits for
// something: its answer is held until look says done, for a while at most. look
// is asked again when rows of the table have changed.
func hold(c *call, table string, look func(*call) (res *response, done bool, err error)) (*response, error) {
	return holdUntil(c, time.Now().Add(holdFor), table, look)
}

// holdUntil is hold until a deadline.
func holdUntil(c *call, deadline time.Time, table string, look func(*call) (res *response, done bool, err error)) (*response, error) {
	changed, stop := c.s.Store.Watch(table)
	defer stop()
	for {
		done := false
		res, err := inTx(func(c *call) (res *response, err error) {
			res, done, err = look(c)
			return res, err
		})(c)
		if err != nil || done || !c.fromCLI() || !c.wait(changed, deadline) {
			return res, err
		}
	}
}
