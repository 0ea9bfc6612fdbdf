from frameworks.mapreduce.worker.executor import main

if __name__ == "__main__":
    main()
