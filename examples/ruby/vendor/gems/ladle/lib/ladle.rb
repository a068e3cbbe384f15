# A very small HTTP/1.1 server: one thread a connection, keep-alive, and a stop that waits for requests in flight.
module Ladle
end

require "ladle/request"
require "ladle/server"
