Gem::Specification.new do |spec|
  spec.name = "ladle"
  spec.version = "1.0.0"
  spec.summary = "A very small HTTP server"
  spec.authors = ["cupola"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 2.7"
  spec.files = ["lib/ladle.rb", "lib/ladle/request.rb", "lib/ladle/server.rb"]
end
