# Builds the client on grpc-go, when Go is there and its modules can be had: `cmake -DGO=go -DOUT=FILE -P build.cmake`.
# Without it bench/rpc names the peer and leaves it out. Go knows by itself what has not changed.
execute_process(
  COMMAND ${GO} build -mod=readonly -trimpath -buildvcs=false -p 2 -o ${OUT} .
  WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}
  RESULT_VARIABLE failed
  ERROR_VARIABLE why)
if(failed)
  file(REMOVE ${OUT})
  message("bench/rpc goes without grpc-go:\n${why}")
endif()
